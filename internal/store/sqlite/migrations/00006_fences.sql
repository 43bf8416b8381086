-- +goose Up

-- claim counts how often a delivery was claimed. While it is leased, next_at is when its claim lapses.
ALTER TABLE deliveries ADD COLUMN claim INTEGER NOT NULL DEFAULT 0;
ALTER TABLE deliveries ADD COLUMN leased INTEGER NOT NULL DEFAULT 0;
CREATE INDEX deliveries_leased ON deliveries (webhook, next_at) WHERE leased = 1;
