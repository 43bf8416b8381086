-- +goose Up

-- How deliveries to a webhook went lately, apart from the webhook: it changes with each attempt.
CREATE TABLE health (
    webhook          text   COLLATE "C" PRIMARY KEY REFERENCES webhooks (id) ON DELETE CASCADE,
    last_delivery_at bigint NOT NULL,
    last_error       text   NOT NULL,
    failed_since     bigint NOT NULL,
    throttled_until  bigint NOT NULL,
    window_at        bigint NOT NULL,
    attempts         bigint NOT NULL,
    failures         bigint NOT NULL
) WITH (fillfactor = 80);
INSERT INTO health (webhook, last_delivery_at, last_error, failed_since, throttled_until, window_at, attempts, failures)
    SELECT id, last_delivery_at, last_error, failed_since, 0, 0, 0, 0 FROM webhooks
    WHERE last_delivery_at <> 0 OR last_error <> '' OR failed_since <> 0;
ALTER TABLE webhooks DROP COLUMN last_delivery_at;
ALTER TABLE webhooks DROP COLUMN last_error;
ALTER TABLE webhooks DROP COLUMN failed_since;

-- expires_at is 0 for one that never expires, ended_at is 0 until it ends. A host is host:port; empty for webhooks from before
-- there were hosts.
ALTER TABLE webhooks ADD COLUMN host text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE webhooks ADD COLUMN verified_at bigint NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN suspended_at bigint NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN ended_at bigint NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN end_reason text NOT NULL DEFAULT '';
DROP INDEX webhooks_by_expiry;
DROP INDEX webhooks_by_due;
CREATE INDEX webhooks_by_expiry ON webhooks (expires_at) WHERE expires_at <> 0;
CREATE INDEX webhooks_by_end ON webhooks (ended_at) WHERE ended_at <> 0;
CREATE INDEX webhooks_by_due ON webhooks (due_at, n, host) WHERE NOT suspended AND due_at IS NOT NULL;

-- Deliveries of all kinds: kind is empty for an occurrence. watermark is NULL until the first claim.
ALTER TABLE deliveries ADD COLUMN kind text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE deliveries ADD COLUMN watermark bigint;
ALTER TABLE deliveries DROP CONSTRAINT deliveries_pkey;
ALTER TABLE deliveries ADD PRIMARY KEY (webhook, seq, kind);
DROP INDEX deliveries_of_place;
CREATE INDEX deliveries_of_place ON deliveries (seq) WHERE kind = '';

-- What was tried, for people to look at.
CREATE TABLE attempts (
    n       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app     text   COLLATE "C" NOT NULL,
    webhook text   COLLATE "C" NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    seq     bigint NOT NULL,
    kind    text   COLLATE "C" NOT NULL,
    nth     bigint NOT NULL, -- of its webhook
    number  bigint NOT NULL,
    at      bigint NOT NULL,
    took    bigint NOT NULL, -- microseconds
    status  bigint NOT NULL,
    reason  text   NOT NULL,
    outcome text   COLLATE "C" NOT NULL,
    next_at bigint NOT NULL
);
CREATE INDEX attempts_of_app ON attempts (app, n);
CREATE INDEX attempts_of_webhook ON attempts (webhook, n);
CREATE INDEX attempts_failed ON attempts (app, n) WHERE outcome <> 'delivered';
CREATE INDEX attempts_of_place ON attempts (seq, n) WHERE kind = '';
