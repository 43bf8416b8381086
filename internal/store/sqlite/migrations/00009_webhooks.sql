-- +goose Up

-- How deliveries to a webhook went lately, apart from the webhook: it changes with each attempt.
CREATE TABLE health (
    webhook          TEXT    PRIMARY KEY REFERENCES webhooks (id) ON DELETE CASCADE,
    last_delivery_at INTEGER NOT NULL,
    last_error       TEXT    NOT NULL,
    failed_since     INTEGER NOT NULL,
    throttled_until  INTEGER NOT NULL,
    window_at        INTEGER NOT NULL,
    attempts         INTEGER NOT NULL,
    failures         INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
INSERT INTO health (webhook, last_delivery_at, last_error, failed_since, throttled_until, window_at, attempts, failures)
    SELECT id, last_delivery_at, last_error, failed_since, 0, 0, 0, 0 FROM webhooks
    WHERE last_delivery_at <> 0 OR last_error <> '' OR failed_since <> 0;
ALTER TABLE webhooks DROP COLUMN last_delivery_at;
ALTER TABLE webhooks DROP COLUMN last_error;
ALTER TABLE webhooks DROP COLUMN failed_since;

-- expires_at is 0 for one that never expires, ended_at is 0 until it ends. A host is host:port; empty for webhooks from before
-- there were hosts.
ALTER TABLE webhooks ADD COLUMN host TEXT NOT NULL DEFAULT '';
ALTER TABLE webhooks ADD COLUMN verified_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN suspended_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN ended_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN end_reason TEXT NOT NULL DEFAULT '';
DROP INDEX webhooks_by_expiry;
DROP INDEX webhooks_by_due;
CREATE INDEX webhooks_by_expiry ON webhooks (expires_at) WHERE expires_at <> 0;
CREATE INDEX webhooks_by_end ON webhooks (ended_at) WHERE ended_at <> 0;
CREATE INDEX webhooks_by_due ON webhooks (due_at, n, host) WHERE suspended = 0 AND due_at IS NOT NULL;

-- Deliveries of all kinds: kind is empty for an occurrence. watermark is NULL until the first claim.
CREATE TABLE queued (
    webhook   TEXT    NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    seq       INTEGER NOT NULL,
    kind      TEXT    NOT NULL,
    attempts  INTEGER NOT NULL,
    next_at   INTEGER NOT NULL,
    error     TEXT    NOT NULL,
    claim     INTEGER NOT NULL,
    leased    INTEGER NOT NULL,
    watermark INTEGER,
    PRIMARY KEY (webhook, seq, kind)
) WITHOUT ROWID, STRICT;
INSERT INTO queued (webhook, seq, kind, attempts, next_at, error, claim, leased)
    SELECT webhook, seq, '', attempts, next_at, error, claim, leased FROM deliveries;
DROP TABLE deliveries;
ALTER TABLE queued RENAME TO deliveries;
CREATE INDEX deliveries_leased ON deliveries (webhook, next_at) WHERE leased = 1;
CREATE INDEX deliveries_by_due ON deliveries (webhook, next_at, seq);
CREATE INDEX deliveries_of_place ON deliveries (seq) WHERE kind = '';

-- What was tried, for people to look at.
CREATE TABLE attempts (
    n       INTEGER PRIMARY KEY,
    app     TEXT    NOT NULL,
    webhook TEXT    NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    nth     INTEGER NOT NULL, -- of its webhook
    number  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    took    INTEGER NOT NULL, -- microseconds
    status  INTEGER NOT NULL,
    reason  TEXT    NOT NULL,
    outcome TEXT    NOT NULL,
    next_at INTEGER NOT NULL
) STRICT;
CREATE INDEX attempts_of_app ON attempts (app);
CREATE INDEX attempts_of_webhook ON attempts (webhook);
CREATE INDEX attempts_failed ON attempts (app) WHERE outcome <> 'delivered';
CREATE INDEX attempts_of_place ON attempts (seq) WHERE kind = '';
