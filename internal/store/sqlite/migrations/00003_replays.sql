-- +goose Up

-- What a subscription is owed of the time before it was made: the places after from_seq, up to until_seq. It has received them
-- up to after_seq. A finished one stays for as long as its subscription.
CREATE TABLE replays (
    n            INTEGER PRIMARY KEY,
    subscription TEXT    NOT NULL UNIQUE REFERENCES subscriptions (id) ON DELETE CASCADE,
    conversation TEXT    NOT NULL,
    from_seq     INTEGER NOT NULL,
    after_seq    INTEGER NOT NULL,
    until_seq    INTEGER NOT NULL
) STRICT;
CREATE INDEX replays_of_conversation ON replays (conversation);
CREATE INDEX replays_unfinished ON replays (conversation) WHERE after_seq < until_seq;
