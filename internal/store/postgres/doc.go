// Package postgres is the store for several nodes: one PostgreSQL database, which any number of processes share.
//
// Here belongs what keeps rows and finds them: tables and migrations, the queries (queries.sql, from which sqlc makes
// internal/queries), how a node makes its changes and learns of the others', and the mapping of PostgreSQL's errors to the
// store's. How updates share a transaction is package group's, how the server is reached internal/postgres's, how nodes tell
// each other to look bus/postgres's. What an event or a subscription means is none of these.
//
// # Writing
//
// One node writes at a time. A node gathers its updates into groups (package group) and runs each group in one transaction,
// which begins by taking an advisory lock and reading the one row of table log under it. So places in the log are given out
// and become visible in the order of commits, whichever node gives them, updates are serial, and the updates of a group share
// the wait for the server's disk. The lock is the transaction's: it works behind a pooler, and goes with the transaction. It
// is PostgreSQL's own kind of lock, which is given in the order in which it was asked for, so that no node starves another,
// and a transaction that writes nothing leaves no trace of it, as it would of a locked row.
//
// A group of emits costs two exchanges with the server, whatever their number: one begins the transaction, takes the lock and
// reads the log's state; the other inserts all occurrences with their places on topics, writes the state and commits (type
// pipeline). Between them an emit asks nothing. Who subscribes to a topic, and which version an app's manifest has, a node
// knows by heart, as far as the topics used last go; where many updates are for others, they are asked for in one exchange
// (type group.Foreseer). log.changes grows with every change of such things on any node, and tells a node that its knowledge is out of
// date. An occurrence's key is taken for free unless it is known not to be; the index refuses the occurrence if it is not, and
// then the group is run again, knowing better (type keys).
//
// # What a node cannot do to the others
//
// A node that dies, or hangs, within a transaction loses the lock after ten seconds: the server ends a session that is idle
// in a transaction, and other limits end statements and waits. They are set with each transaction, as nothing else holds for
// certain behind a pooler.
//
// # A commit without an answer
//
// When the connection breaks while the server commits, the updates may have been kept or not. Each node numbers its
// transactions and writes the number into its row of table nodes with each. So it can ask, on another connection and under the
// lock, whether the last one is there, and run the updates again if not. If that cannot be found out within a minute, the
// callers are told just that ([group.ErrUnknown]).
//
// # Reading
//
// A view is a read-only transaction with one snapshot, on one of a few connections. Since places become visible in their order,
// what a snapshot holds of the log has no gaps that are filled later, and no reader by cursor ever skips anything.
//
// # Used-up ids
//
// Spend inserts an id where there is none and tells by that whether it was fresh; calls that come together share a statement.
// The commit does not wait for the disk.
//
// # Values
//
// What apps and agents write is kept as bytes, since PostgreSQL's text has no room for NUL: texts, topics, JSON. Names are text
// that compares bytewise; one that cannot be kept is an error of its update.
package postgres
