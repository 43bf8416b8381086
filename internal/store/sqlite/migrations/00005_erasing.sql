-- +goose Up

-- Occurrences whose content is erased once nobody is owed it any more: a row for each who is.
CREATE TABLE owed (
    seq          INTEGER NOT NULL,
    holder       TEXT    NOT NULL, -- id of a subscription or of a webhook
    conversation TEXT    NOT NULL, -- of the subscription; empty for a webhook
    PRIMARY KEY (seq, holder)
) WITHOUT ROWID, STRICT;
CREATE INDEX owed_to_holder ON owed (holder);
CREATE INDEX owed_to_conversation ON owed (conversation, seq);

-- One row: how often content was erased, and how many of those times are scrubbed from the files.
CREATE TABLE erasures (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    made     INTEGER NOT NULL,
    scrubbed INTEGER NOT NULL
) STRICT;
INSERT INTO erasures (id, made, scrubbed) VALUES (1, 0, 0);

-- Users who are being forgotten.
CREATE TABLE forgetting (
    app     TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL,
    PRIMARY KEY (app, user_id)
) WITHOUT ROWID, STRICT;

CREATE INDEX conversations_of_user ON conversations (app, user_id);
CREATE INDEX webhooks_of_principal ON webhooks (app, principal);
CREATE INDEX occurrences_to_user ON occurrences (app, recipient) WHERE recipient IS NOT NULL;
CREATE INDEX publish_urls_for_user ON publish_urls (app, recipient);
CREATE INDEX publish_urls_of_topic ON publish_urls (app, topic);
