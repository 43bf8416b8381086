// Package quota says how much one of many may do in a time: requests of an app or a user, failures of an address, bytes of a
// day.
//
// Here belongs the keeping of token buckets by key, bounded in number. How large they are, and what is answered to who has
// none left, does not: that is said by whoever asks.
package quota
