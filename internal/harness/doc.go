// Package harness is the one table of the programs agents run in: how each is recognised, how it can be woken, and what it is told.
//
// Every text of the core that reaches a model is written here, and golden files hold each of them. SDKs have no part of it:
// they send who is calling, and carry what this package answers. What it does not do: I/O, credentials, or delivery; it is
// given the command, key or voucher to put into words.
package harness
