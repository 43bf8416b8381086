// Package eventsclienttest holds tests of the Events client, sdk/go/events, against servers that were not written for it: an app
// of ours with a core in the process, and the server of the package mcp-webhook-events on PyPI.
//
// The latter needs python3 with its venv module and a package index, and fails where one is missing.
package eventsclienttest
