// Package postgres carries hints between the nodes of one PostgreSQL database, over LISTEN and NOTIFY.
//
// A hint reaches this node's watchers at once. For the other nodes it is collected with those that come at the same time and
// sent after the commit that it is about, by a connection of its own: a NOTIFY within a transaction would have all commits of
// the database wait for each other. Where too many topics are hinted at together, the others are told to look at everything.
//
// Hints get lost: with a connection, behind a pooler that hears nothing, with a node that dies between commit and NOTIFY. So a
// node also looks at the log from time to time, often while it hears nothing and once in a while otherwise, and hints at what
// has come. Whatever it finds out late is late and not lost: the database is the truth.
//
// Here belongs how hints travel. What the log holds is the store's (see [Follower]), what watchers do is the core's.
package postgres
