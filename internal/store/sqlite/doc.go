// Package sqlite is the default store: one SQLite file, no server, no cgo.
//
// Here belongs what keeps rows and finds them: tables and migrations, the queries (queries.sql, from which sqlc makes
// internal/queries), group commit, the topic index, and the mapping of SQLite's errors to the store's. What an event or a
// subscription means does not.
//
// # Writing
//
// One goroutine, the writer, has the only connection that writes. Updates queue; the writer takes all that wait, runs them
// in one transaction and answers them when its commit, with synchronous=FULL, is on the disk. So a hundred publishers
// share one fsync, and no update ever waits for a lock. There are no savepoints: an update that fails before it wrote
// anything just has its error. When one fails after it wrote, or the commit does, the transaction is rolled back and the
// others are run again without it.
//
// Since the writer makes every change, it may know things by heart: the state of the log, and who subscribes to the topics
// that were asked for last (type cache). Whatever it knows is forgotten with a rollback.
//
// # The log and its topic index
//
// An occurrence goes to the end of table occurrences, at the place the writer gives it. The index that finds a topic's
// places, table topic_places, is another matter: written with each occurrence it would change a page somewhere for every
// topic, which costs more than all the rest. It is written later, many places at a time, sorted, a topic's places together
// in one row (type run), and with a commit that happens anyway; log.indexed says how far it is complete. What lies beyond
// is in memory (type tail), and is read again from the log when the database is opened.
//
// A reader merges the two, and this is why it never skips a place. It reads from a snapshot, which holds the log up to
// log.head and the index up to log.indexed, both of one commit; what it needs from memory is exactly what lies between.
// The writer puts a place into the tail before it commits it, so the tail reaches to any snapshot's head; places beyond
// it, not committed or not yet seen, are disregarded. The writer takes places out of the tail only after the commit that
// put them into the index. A reader whose snapshot is older than that sees that the tail begins after its own log.indexed
// and reads the few thousand occurrences in question from the log itself.
//
// # Reading
//
// Views have a few connections of their own and are read transactions of SQLite's write-ahead log: they neither wait for
// the writer nor hold it up. Another connection brings that log into the database in the background (type checkpointer).
//
// # Used-up ids
//
// Spend answers from memory and is saved with the next commit, within a tenth of a second if none comes. One row holds all
// ids of a commit that end in the same minute.
//
// # The file
//
// A lock on a file beside it keeps other processes out. Tables are brought up to date when it is opened, forward only; a
// file of a later version is refused. It does not shrink when rows are removed: the room is used again.
package sqlite
