-- +goose Up

-- Times are microseconds since 1970 in UTC, 0 for the zero time. JSON is kept as the bytes it came in. n is the order of creation.

-- One row: the state of the log.
CREATE TABLE log (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    epoch     TEXT    NOT NULL,
    head      INTEGER NOT NULL, -- the last place used
    horizon   INTEGER NOT NULL, -- everything up to here may have been removed
    indexed   INTEGER NOT NULL, -- topic_places is complete up to here
    manifests INTEGER NOT NULL  -- the last manifest version given out
) STRICT;

CREATE TABLE apps (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    name       TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE keys (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    app        TEXT    NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    name       TEXT    NOT NULL,
    public     BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL
) STRICT;
CREATE INDEX keys_of_app ON keys (app);

CREATE TABLE manifests (
    app     TEXT    PRIMARY KEY REFERENCES apps (id) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    body    BLOB    NOT NULL
) STRICT;

CREATE TABLE conversations (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    app        TEXT    NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    harness    TEXT    NOT NULL,
    client     TEXT    NOT NULL,
    version    TEXT    NOT NULL,
    kind       TEXT    NOT NULL, -- of harness and client
    user_id    TEXT    NOT NULL,
    thread     TEXT    NOT NULL,
    position   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX conversations_of_thread ON conversations (app, kind, user_id, thread);
CREATE INDEX conversations_by_sight ON conversations (seen_at, n);

-- A subscription is live while ended_at is 0, and until_seq is 0 then. Its app is that of its conversation.
CREATE TABLE subscriptions (
    n            INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    app          TEXT    NOT NULL,
    conversation TEXT    NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    user_id      TEXT    NOT NULL,
    topic        TEXT    NOT NULL,
    event        TEXT    NOT NULL,
    arguments    BLOB,
    filter       BLOB,
    once         INTEGER NOT NULL,
    claimed      INTEGER NOT NULL,
    from_seq     INTEGER NOT NULL,
    until_seq    INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    ended_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX subscriptions_of_conversation ON subscriptions (conversation, until_seq);
CREATE INDEX subscriptions_to_topic ON subscriptions (app, topic) WHERE ended_at = 0;
CREATE INDEX subscriptions_of_user ON subscriptions (app, user_id) WHERE ended_at = 0;
CREATE INDEX subscriptions_of_event ON subscriptions (app, event) WHERE ended_at = 0;
CREATE INDEX subscriptions_by_expiry ON subscriptions (expires_at) WHERE ended_at = 0;
CREATE INDEX subscriptions_by_end ON subscriptions (ended_at) WHERE ended_at <> 0;

CREATE TABLE webhooks (
    n                INTEGER PRIMARY KEY,
    id               TEXT    NOT NULL UNIQUE,
    app              TEXT    NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    principal        TEXT    NOT NULL,
    user_id          TEXT    NOT NULL,
    url              TEXT    NOT NULL,
    event            TEXT    NOT NULL,
    arguments        BLOB,
    topic            TEXT    NOT NULL,
    filter           BLOB,
    dialect          TEXT    NOT NULL,
    from_seq         INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL,
    secret           BLOB,
    former           BLOB,
    former_until     INTEGER NOT NULL,
    last_delivery_at INTEGER NOT NULL,
    last_error       TEXT    NOT NULL,
    failed_since     INTEGER NOT NULL,
    suspended        INTEGER NOT NULL,
    due_at           INTEGER -- the least next_at of its deliveries; NULL when it has none
) STRICT;
CREATE INDEX webhooks_to_topic ON webhooks (app, topic);
CREATE INDEX webhooks_of_user ON webhooks (app, user_id);
CREATE INDEX webhooks_of_event ON webhooks (app, event);
CREATE INDEX webhooks_by_expiry ON webhooks (expires_at);
CREATE INDEX webhooks_by_due ON webhooks (due_at) WHERE suspended = 0 AND due_at IS NOT NULL;

CREATE TABLE deliveries (
    webhook  TEXT    NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    seq      INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    next_at  INTEGER NOT NULL,
    error    TEXT    NOT NULL,
    PRIMARY KEY (webhook, seq)
) WITHOUT ROWID, STRICT;
CREATE INDEX deliveries_by_due ON deliveries (webhook, next_at, seq);
CREATE INDEX deliveries_of_place ON deliveries (seq);

-- The log. topics are joined by line feeds.
CREATE TABLE occurrences (
    seq       INTEGER PRIMARY KEY,
    app       TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    event     TEXT    NOT NULL,
    topics    TEXT    NOT NULL,
    arguments BLOB,
    text      TEXT    NOT NULL,
    data      BLOB,
    recipient TEXT,
    own_key   TEXT,
    matched   INTEGER NOT NULL,
    at        INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX occurrences_of_key ON occurrences (app, event, own_key) WHERE own_key IS NOT NULL;

-- The topic index, which lags behind the log: see log.indexed. A row is a run of a topic's places, of which last is the last;
-- earlier gives those before it, as varints, each the distance to the next.
CREATE TABLE topic_places (
    app     TEXT    NOT NULL,
    topic   TEXT    NOT NULL,
    last    INTEGER NOT NULL,
    earlier BLOB,
    PRIMARY KEY (app, topic, last)
) WITHOUT ROWID, STRICT;

-- Used-up ids, 16 bytes each, those of one commit that end in one minute in a row.
CREATE TABLE spent (
    n     INTEGER PRIMARY KEY,
    until INTEGER NOT NULL, -- minutes since 1970
    ids   BLOB    NOT NULL
) STRICT;
CREATE INDEX spent_by_end ON spent (until);
