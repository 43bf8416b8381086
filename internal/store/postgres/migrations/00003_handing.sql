-- +goose Up

-- Until when what waits for a conversation is reserved for the result of one call; 0 when it is not.
ALTER TABLE conversations ADD COLUMN handing_until bigint NOT NULL DEFAULT 0;
