// Package rousetest runs a core within a Go test, as net/http/httptest runs a server.
//
// The core is the real one: its database is a file with fsync, its addresses are real HTTP on the loopback interface, and it
// delivers webhooks to loopback addresses. It lives as long as the test.
//
//	core := rousetest.NewCore(t)
//	wake, err := wakeshift.New(wakeshift.WithCore(core.URL), wakeshift.WithKey(core.Key))
//
// What does not belong here: anything that makes a core behave otherwise than a real one.
package rousetest
