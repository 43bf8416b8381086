// Package storetest is the conformance suite that every store must pass: what the interface promises, put as tests.
//
// It knows nothing of an implementation: it is given a way to open an empty store and one to open a store's database
// again. What only one implementation can do, or only one can suffer, is tested beside that one.
package storetest
