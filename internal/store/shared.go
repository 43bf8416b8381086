package store

import (
	"context"
	"time"
)

// A Shared is a Store whose database several nodes may use at once. Beside what every Store keeps it knows what the nodes tell
// each other: which conversations are connected to which of them, and whose turn it is to do what one is enough for. A
// restart of the database may lose that, and nothing is durable about it: each node tells it again.
//
// A node is known by an id that is no other's. What it has told counts until its lease lapses, by the database's clock.
type Shared interface {
	Store

	// Attend says that the node is there, and for how long that holds. It removes the nodes whose lease has lapsed with their
	// connections, and reports how the node's own stand.
	Attend(ctx context.Context, node string, lease time.Duration) (Attendance, error)
	// Leave removes the node with its connections.
	Leave(ctx context.Context, node string) error

	// Connect adds connections of the node, and removes those with these ids. The order of connections is that of the calls,
	// and within one that of the list. One that is known already stays as it is.
	Connect(ctx context.Context, node string, opened []Connection, closed []string) (Connected, error)
	// Paths gives the path of each one's newest connection. A conversation without a connection is missing.
	Paths(ctx context.Context, conversations []string) (map[string]string, error)
	// CountConnected counts, by the path of the newest connection, the app's connected conversations that are subscribed to
	// the topic by its name at the time.
	CountConnected(ctx context.Context, app, topic string, at time.Time) (map[string]int, error)

	// Turn reports whether it is the node's turn: it is, for as long as the lease, when it is no other node's.
	Turn(ctx context.Context, what, node string, lease time.Duration) (bool, error)
}

// A Connection is an open stream or socket of a conversation at a node.
type Connection struct {
	ID                      string // no other connection's
	App, Conversation, Path string
	Place                   int64 // in the order of connections; 0 for one that is not known yet
}

// A Rank is how a connection stands among those of its conversation.
type Rank struct {
	ID    string
	Place int64 // as in [Connection]
	Newer int   // how many are newer
}

// An Attendance is what a node learns of itself.
type Attendance struct {
	// New says that the node was not known: what it told before, if anything, is lost.
	New bool
	// Passed are those of its connections for which there are newer ones. Another has none.
	Passed []Rank
}

// A Connected is what a call of Connect changed.
type Connected struct {
	Ranks  []Rank   // of the node's connections that are new or stand otherwise than before
	Others []string // ids of other nodes with connections that do
}
