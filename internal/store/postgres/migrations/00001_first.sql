-- +goose Up

-- Times are microseconds since 1970 in UTC, 0 for the zero time. JSON is kept as the bytes it came in, and so are topics and
-- texts, in which there may be characters that PostgreSQL's text cannot hold. n is the order of creation. Names compare
-- bytewise.

-- One row: the state of the log. Who changes anything in this database does so under its lock.
CREATE TABLE log (
    id        smallint PRIMARY KEY CHECK (id = 1),
    epoch     text     COLLATE "C" NOT NULL,
    head      bigint   NOT NULL, -- the last place used
    horizon   bigint   NOT NULL, -- everything up to here may have been removed
    manifests bigint   NOT NULL, -- the last manifest version given out
    changes   bigint   NOT NULL, -- grows when anything changes that nodes know by heart
    bytes     bigint   NOT NULL, -- about what the occurrences take
    erased    bigint   NOT NULL, -- how often content was erased
    scrubbed  bigint   NOT NULL, -- and how many of those times are scrubbed
    master    text     NOT NULL  -- the id of the master key that seals what is here
) WITH (fillfactor = 10);

-- The nodes that write, and the last group of transactions that each has committed.
CREATE TABLE nodes (
    id      uuid   PRIMARY KEY,
    done    bigint NOT NULL,
    seen_at bigint NOT NULL
) WITH (fillfactor = 10);

CREATE TABLE apps (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         text   COLLATE "C" NOT NULL UNIQUE,
    name       text   NOT NULL,
    created_at bigint NOT NULL
);

CREATE TABLE keys (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         text   COLLATE "C" NOT NULL UNIQUE,
    app        text   COLLATE "C" NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    name       text   NOT NULL,
    public     bytea  NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint NOT NULL
);
CREATE INDEX keys_of_app ON keys (app);

CREATE TABLE manifests (
    app     text   COLLATE "C" PRIMARY KEY REFERENCES apps (id) ON DELETE CASCADE,
    version bigint NOT NULL,
    body    bytea  NOT NULL
);

CREATE TABLE conversations (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         text   COLLATE "C" NOT NULL UNIQUE,
    app        text   COLLATE "C" NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    harness    text   COLLATE "C" NOT NULL,
    client     text   COLLATE "C" NOT NULL,
    version    text   COLLATE "C" NOT NULL,
    kind       text   COLLATE "C" NOT NULL, -- of harness and client
    user_id    text   COLLATE "C" NOT NULL,
    thread     text   COLLATE "C" NOT NULL,
    position   bigint NOT NULL,
    created_at bigint NOT NULL,
    seen_at    bigint NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX conversations_of_thread ON conversations (app, kind, user_id, thread);
CREATE INDEX conversations_of_user ON conversations (app, user_id);
CREATE INDEX conversations_by_sight ON conversations (seen_at, n);

-- A subscription is live while ended_at is 0, and until_seq is 0 then. Its app is that of its conversation.
CREATE TABLE subscriptions (
    n            bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           text    COLLATE "C" NOT NULL UNIQUE,
    app          text    COLLATE "C" NOT NULL,
    conversation text    COLLATE "C" NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    user_id      text    COLLATE "C" NOT NULL,
    topic        bytea   NOT NULL,
    event        text    COLLATE "C" NOT NULL,
    arguments    bytea,
    filter       bytea,
    once         boolean NOT NULL,
    claimed      boolean NOT NULL,
    from_seq     bigint  NOT NULL,
    until_seq    bigint  NOT NULL,
    created_at   bigint  NOT NULL,
    expires_at   bigint  NOT NULL,
    ended_at     bigint  NOT NULL
);
CREATE INDEX subscriptions_of_conversation ON subscriptions (conversation, until_seq);
CREATE INDEX subscriptions_to_topic ON subscriptions (app, topic) WHERE ended_at = 0;
CREATE INDEX subscriptions_of_user ON subscriptions (app, user_id) WHERE ended_at = 0;
CREATE INDEX subscriptions_of_event ON subscriptions (app, event) WHERE ended_at = 0;
CREATE INDEX subscriptions_by_expiry ON subscriptions (expires_at) WHERE ended_at = 0;
CREATE INDEX subscriptions_by_end ON subscriptions (ended_at) WHERE ended_at <> 0;

-- What a subscription is owed of the time before it was made: the places after from_seq, up to until_seq. It has received them
-- up to after_seq. A finished one stays for as long as its subscription.
CREATE TABLE replays (
    n            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription text   COLLATE "C" NOT NULL UNIQUE REFERENCES subscriptions (id) ON DELETE CASCADE,
    conversation text   COLLATE "C" NOT NULL,
    from_seq     bigint NOT NULL,
    after_seq    bigint NOT NULL,
    until_seq    bigint NOT NULL
);
CREATE INDEX replays_of_conversation ON replays (conversation);
CREATE INDEX replays_unfinished ON replays (conversation) WHERE after_seq < until_seq;

CREATE TABLE webhooks (
    n                bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id               text    COLLATE "C" NOT NULL UNIQUE,
    app              text    COLLATE "C" NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    principal        text    COLLATE "C" NOT NULL,
    user_id          text    COLLATE "C" NOT NULL,
    url              text    COLLATE "C" NOT NULL,
    event            text    COLLATE "C" NOT NULL,
    arguments        bytea,
    topic            bytea   NOT NULL,
    filter           bytea,
    dialect          text    COLLATE "C" NOT NULL,
    from_seq         bigint  NOT NULL,
    created_at       bigint  NOT NULL,
    expires_at       bigint  NOT NULL,
    secret           bytea,
    former           bytea,
    former_until     bigint  NOT NULL,
    last_delivery_at bigint  NOT NULL,
    last_error       text    NOT NULL,
    failed_since     bigint  NOT NULL,
    suspended        boolean NOT NULL,
    due_at           bigint  -- the least next_at of its deliveries; NULL when it has none
) WITH (fillfactor = 80);
CREATE INDEX webhooks_to_topic ON webhooks (app, topic);
CREATE INDEX webhooks_of_user ON webhooks (app, user_id);
CREATE INDEX webhooks_of_principal ON webhooks (app, principal);
CREATE INDEX webhooks_of_event ON webhooks (app, event);
CREATE INDEX webhooks_by_expiry ON webhooks (expires_at);
CREATE INDEX webhooks_by_due ON webhooks (due_at, n) WHERE NOT suspended AND due_at IS NOT NULL;

-- claim counts how often a delivery was claimed. While it is leased, next_at is when its claim lapses.
CREATE TABLE deliveries (
    webhook  text    COLLATE "C" NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    seq      bigint  NOT NULL,
    attempts bigint  NOT NULL,
    next_at  bigint  NOT NULL,
    error    text    NOT NULL,
    claim    bigint  NOT NULL DEFAULT 0,
    leased   boolean NOT NULL DEFAULT false,
    PRIMARY KEY (webhook, seq)
);
CREATE INDEX deliveries_leased ON deliveries (webhook, next_at) WHERE leased;
CREATE INDEX deliveries_by_due ON deliveries (webhook, next_at, seq);
CREATE INDEX deliveries_of_place ON deliveries (seq);

-- The log. topics are joined by line feeds.
CREATE TABLE occurrences (
    seq       bigint PRIMARY KEY,
    app       text   COLLATE "C" NOT NULL,
    kind      text   COLLATE "C" NOT NULL,
    event     text   COLLATE "C" NOT NULL,
    topics    bytea  NOT NULL,
    arguments bytea,
    text      bytea  NOT NULL,
    data      bytea,
    recipient text   COLLATE "C",
    own_key   text   COLLATE "C",
    matched   bigint NOT NULL,
    at        bigint NOT NULL
);
CREATE UNIQUE INDEX occurrences_of_key ON occurrences (app, event, own_key) WHERE own_key IS NOT NULL;
CREATE INDEX occurrences_to_user ON occurrences (app, recipient) WHERE recipient IS NOT NULL;
CREATE INDEX occurrences_unlisted ON occurrences (app) WHERE topics = ''; -- of no topic

-- Where a topic's occurrences are in the log.
CREATE TABLE topic_places (
    app   text   COLLATE "C" NOT NULL,
    topic bytea  NOT NULL,
    seq   bigint NOT NULL,
    PRIMARY KEY (app, topic, seq)
);

-- Used-up ids: a hash of each.
CREATE TABLE spent (
    id    uuid   PRIMARY KEY,
    until bigint NOT NULL -- minutes since 1970
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX spent_by_end ON spent (until);

-- Addresses that stand for one event with its arguments, or for one topic. Revoked ones stay, to be answered as gone.
CREATE TABLE publish_urls (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         text   COLLATE "C" NOT NULL UNIQUE,
    app        text   COLLATE "C" NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    event      text   COLLATE "C" NOT NULL,
    arguments  bytea,
    recipient  text   COLLATE "C" NOT NULL,
    topic      bytea  NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint NOT NULL
);
CREATE INDEX publish_urls_of_app ON publish_urls (app, revoked_at);
CREATE INDEX publish_urls_for_user ON publish_urls (app, recipient);
CREATE INDEX publish_urls_of_topic ON publish_urls (app, topic);

-- What an app keeps for one of its users, and the agents it lets in there.
CREATE TABLE workspaces (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         text   COLLATE "C" NOT NULL UNIQUE,
    app        text   COLLATE "C" NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    user_id    text   COLLATE "C" NOT NULL,
    name       text   NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (app, user_id)
);

CREATE TABLE grants (
    n            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           text   COLLATE "C" NOT NULL UNIQUE,
    workspace    text   COLLATE "C" NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    agent        text   COLLATE "C" NOT NULL,
    display_name text   NOT NULL,
    created_at   bigint NOT NULL,
    UNIQUE (workspace, agent)
);

-- Occurrences whose content is erased once nobody is owed it any more: a row for each who is.
CREATE TABLE owed (
    seq          bigint NOT NULL,
    holder       text   COLLATE "C" NOT NULL, -- id of a subscription or of a webhook
    conversation text   COLLATE "C" NOT NULL, -- of the subscription; empty for a webhook
    PRIMARY KEY (seq, holder)
);
CREATE INDEX owed_to_holder ON owed (holder);
CREATE INDEX owed_to_conversation ON owed (conversation, seq);

-- Users who are being forgotten.
CREATE TABLE forgetting (
    app     text COLLATE "C" NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    user_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (app, user_id)
);
