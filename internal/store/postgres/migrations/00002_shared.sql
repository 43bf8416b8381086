-- +goose Up

-- What the nodes tell each other. It is not written to the log of changes: after a crash of the server these tables are
-- empty, and the nodes tell it again.

-- A node counts as there until its time is over.
CREATE UNLOGGED TABLE attending (
    node  text        COLLATE "C" PRIMARY KEY,
    until timestamptz NOT NULL
) WITH (fillfactor = 10);

-- newer is how many connections of the same conversation are newer, by their places; -1 until it was counted.
CREATE UNLOGGED TABLE connections (
    id           text    COLLATE "C" PRIMARY KEY,
    node         text    COLLATE "C" NOT NULL REFERENCES attending (node) ON DELETE CASCADE,
    app          text    COLLATE "C" NOT NULL,
    conversation text    COLLATE "C" NOT NULL,
    path         text    COLLATE "C" NOT NULL,
    place        bigint  NOT NULL,
    newer        integer NOT NULL
);
CREATE INDEX connections_of_conversation ON connections (conversation, place);
CREATE INDEX connections_of_node ON connections (node);
CREATE INDEX connections_passed ON connections (node) WHERE newer > 0;
CREATE INDEX connections_of_app ON connections (app) WHERE newer = 0;

-- This one outlives a crash: a connection keeps its place when it is told again.
CREATE SEQUENCE connection_places;

-- Whose turn it is, until when.
CREATE UNLOGGED TABLE turns (
    what  text        COLLATE "C" PRIMARY KEY,
    node  text        COLLATE "C" NOT NULL,
    until timestamptz NOT NULL
);
