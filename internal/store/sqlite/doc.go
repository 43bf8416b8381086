// Package sqlite is the default store: one SQLite file, no server, no cgo.
//
// Here belongs what keeps rows and finds them: tables and migrations, the queries (queries.sql, from which sqlc makes
// internal/queries), the topic index, what makes a commit durable and a deletion complete, and the mapping of SQLite's errors
// to the store's. What an event or a subscription means does not, nor how updates share a transaction (package group).
//
// # Writing
//
// One goroutine at a time, that of package group, has the only connection that writes, and runs many updates in one
// transaction. Since the writer makes every change, it may know things by heart: the state of the log, and who subscribes to
// the topics that were asked for last (type cache). Whatever it knows is forgotten with a rollback.
//
// # On the disk
//
// A commit goes to SQLite's write-ahead log, and does not wait for the disk (synchronous=NORMAL). An update is answered after
// a sync of that file which began when its commit was complete; it is ours (type wal), and the next transaction runs
// meanwhile. This is as durable as synchronous=FULL, which is the same but for who syncs and when:
//
//   - Frames are only ever appended to the log, in the order of commits, each with a checksum over all before it. After a
//     loss of power the log counts up to the last commit whose frames are whole. One sync after a commit therefore keeps it
//     and all before it; what came after may or may not be there, and was not acknowledged.
//   - NORMAL syncs everything else that FULL does: before a checkpoint copies pages into the database it syncs the log, and
//     after that the database, before the log may be begun anew. So the database holds nothing that the log could lose, and
//     the log is not overwritten before the database has it. Which connection checkpoints, and when, does not matter.
//   - A log that is begun anew has a header with another salt, which SQLite syncs before the first frame; frames of the
//     former one do not count from then on. A commit of the former log, when our sync comes, is in the database and synced.
//   - The log's directory entry is synced by SQLite with the header of a new file. The file is made when the database is
//     opened, and is the same one until it is closed.
//   - A process that is killed may leave commits that it had no time to sync. The next one syncs the log when it opens it,
//     before it shows them to anybody.
//
// Nobody sees what is not on the disk: a view notes, once it has its snapshot, what commits that may hold, and ends after they
// are synced (group.Writer.Synced). Otherwise a cursor could be given out for a place that is lost and then given out again,
// to an occurrence that the cursor skips.
//
// A disk that is full says so when the log is written, before the commit: nothing of it is kept. (A file system that
// finds out only when it syncs has failed the sync.) A sync that failed is final, see package group.
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
// file of a later version is refused. It does not shrink when rows are removed: the room is used again, and holds nothing of
// them once Scrub has returned.
package sqlite
