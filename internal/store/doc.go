// Package store is what the core asks of its database, and no more: the interface, its errors, and what a transaction promises.
//
// The database is the truth. A state change, its occurrence and whatever it queues are one transaction, which the core
// composes from the small operations here; a store decides nothing about events. The implementations are in store/sqlite
// and store/postgres, and store/storetest is the one suite each must pass. Only core imports this package for work.
package store
