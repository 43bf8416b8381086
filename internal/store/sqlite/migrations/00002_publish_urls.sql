-- +goose Up

-- Addresses that stand for one event with its arguments, or for one topic. Revoked ones stay, to be answered as gone.
CREATE TABLE publish_urls (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    app        TEXT    NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    event      TEXT    NOT NULL,
    arguments  BLOB,
    recipient  TEXT    NOT NULL,
    topic      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL
) STRICT;
CREATE INDEX publish_urls_of_app ON publish_urls (app, revoked_at);
