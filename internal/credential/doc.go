// Package credential makes and checks everything that is handed out or let in: app keys and the assertions they sign,
// session keys and capability URLs, vouchers, tickets, beacons, and the sealing of secrets at rest.
//
// Nothing that is handed out is stored. A [Master], the core's one secret, gives each purpose a key of its own; a token
// carries the id it speaks for and a MAC under that key, so that a copy of the database opens nothing. Tokens are compared
// in constant time and have exactly one spelling: every other text, of whatever length, is simply not one.
//
// What does not belong here: whether the id a token names still exists, has ended or was used before. That is the core's
// question to the store. There is no I/O but the reading and creating of the master key's file.
package credential
