package eventstest

import (
	"strings"
	"testing"
)

// What is wrong with a request whatever its method: headers.
func TestHeaders(t *testing.T) {
	t.Parallel()
	header := func(name, value string) map[string]string { return map[string]string{name: value} }
	misses(t, "headers", []raw{
		{about: "Mcp-Name: another event", headers: header("Mcp-Name", "other.updated")},
		{about: "Mcp-Name: in another case", headers: header("Mcp-Name", "Site.Updated")},
		{about: "Mcp-Name: base64 of another event", headers: header("Mcp-Name", "=?base64?b3RoZXI=?=")},
		{about: "Mcp-Name: no base64", headers: header("Mcp-Name", "=?base64?!!?=")},
		{about: "Mcp-Name: there, and name is not", body: with(`,"name":"site.updated"`, ``)},
		{about: "Mcp-Method: another", headers: header("Mcp-Method", "events/list")},
		{about: "Mcp-Method: in another case", headers: header("Mcp-Method", "EVENTS/POLL")},
		{about: "Mcp-Method: missing", headers: header("Mcp-Method", "")},
		{about: "MCP-Protocol-Version: missing", headers: header("MCP-Protocol-Version", "")},
		{about: "MCP-Protocol-Version: another", headers: header("MCP-Protocol-Version", "2025-11-25")},
		{about: "Accept: JSON only", headers: header("Accept", "application/json")},
		{about: "Accept: missing", headers: header("Accept", "")},
		{about: "Content-Type: text", headers: header("Content-Type", "text/plain")},
		{about: "Content-Type: missing", headers: header("Content-Type", "")},
		{about: "a GET", verb: "GET"},
		{about: "a DELETE", verb: "DELETE"},
	})
}

// What is wrong with a request whatever its method: the message and its _meta.
func TestMessages(t *testing.T) {
	t.Parallel()
	const version = `"io.modelcontextprotocol/protocolVersion":"` + revision + `"`
	misses(t, "messages", []raw{
		{about: "no JSON", body: func(string) string { return `{"jsonrpc":` }},
		{about: "nothing", body: func(string) string { return `` }},
		{about: "a batch", body: func(message string) string { return `[` + message + `]` }},
		{about: "another protocol", body: with(`"jsonrpc":"2.0"`, `"jsonrpc":"1.0"`)},
		{about: "an id that is null", body: with(`"id":7`, `"id":null`)},
		{about: "an id that is an object", body: with(`"id":7`, `"id":{}`)},
		{about: "params that are a list", body: func(string) string { return `{"jsonrpc":"2.0","id":7,"method":"events/poll","params":[]}` }},
		{about: "no params", body: func(string) string { return `{"jsonrpc":"2.0","id":7,"method":"events/poll"}` }},
		{about: "no _meta", body: func(string) string {
			return `{"jsonrpc":"2.0","id":7,"method":"events/poll","params":{"name":"site.updated","arguments":{"site":"a"}}}`
		}},
		{about: "_meta without a version", body: with(version+`,`, ``)},
		{about: "_meta without capabilities", body: with(`"io.modelcontextprotocol/clientCapabilities":{},`, ``)},
		{about: "_meta with capabilities that are a text", body: with(`"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/clientCapabilities":"all"`)},
		{about: "_meta with another version than the header", body: with(version, `"io.modelcontextprotocol/protocolVersion":"2025-11-25"`)},
		{about: "a version there is not", headers: map[string]string{"MCP-Protocol-Version": "2099-01-01"},
			body: with(version, `"io.modelcontextprotocol/protocolVersion":"2099-01-01"`)},
		{about: "a body over 4 MiB", body: func(message string) string { return strings.Repeat(" ", 4<<20) + message }},
	})
}
