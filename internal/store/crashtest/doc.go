// Package crashtest kills a process that writes to a store, again and again at random moments, and checks each time what
// the database holds: nothing acknowledged is lost, nothing is there that was not sent, a transaction is there whole or not
// at all, no place in the log is used twice, and what lists the log by topic agrees with the log.
//
// It serves every store: a test of a store gives it a command that runs Write in a process of its own, and a way to open
// the database. A killed process does not lose what it gave to the operating system, so this is no proof against power
// loss.
package crashtest
