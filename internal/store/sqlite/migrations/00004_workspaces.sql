-- +goose Up

-- What an app keeps for one of its users, and the agents it lets in there.
CREATE TABLE workspaces (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    app        TEXT    NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    user_id    TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (app, user_id)
) STRICT;

CREATE TABLE grants (
    n            INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    workspace    TEXT    NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    agent        TEXT    NOT NULL,
    display_name TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    UNIQUE (workspace, agent)
) STRICT;
