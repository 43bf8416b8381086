// Package eventstest holds what MCP Events clients are answered, whole: an app's MCP server, attached with our Go SDK to a core, is
// asked over HTTP as clients of either dialect ask, and golden files have its status and body.
//
// It holds tests only. Here belongs what only SDK and core together decide: which of the two refuses, with what code, data and HTTP
// status. What each decides alone is tested beside it.
package eventstest
