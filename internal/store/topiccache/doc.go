// Package topiccache keeps at hand who subscribes to the topics that were used last, so that an emit need not ask the
// database.
//
// Here belong rows by topic and their order of creation, whatever the database. When they are out of date is the store's to
// know: it forgets a topic when it changes a row of it, and everything with a rollback.
package topiccache
