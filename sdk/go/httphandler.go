package wakeshift

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// revisionHeader repeats the revision of the protocol that a request is of.
const revisionHeader = "Mcp-Protocol-Version"

// HTTPHandler serves attached MCP servers to clients of every revision of the
// protocol, with all that [Wakeshift.Handler] adds. The MCP SDK has sessions for
// the revisions before 2026-07-28 only, and that revision without sessions only:
// here each gets what it needs. With options.Stateless no client gets a session.
// Otherwise options, which may be nil, apply as they are.
//
// An open stream does not keep a session from its options.SessionTimeout, nor
// does it end with that.
//
// server is called for each request without a session, maybe more than once, and
// for each new session. opts are those of [Wakeshift.Attach].
func (w *Wakeshift) HTTPHandler(server func(*http.Request) *mcp.Server, options *mcp.StreamableHTTPOptions, opts AttachOptions) http.Handler {
	var with mcp.StreamableHTTPOptions
	if options != nil {
		with = *options
	}
	sessions := http.Handler(mcp.NewStreamableHTTPHandler(server, &with))
	if with.Stateless {
		return w.Handler(sessions, opts)
	}
	with.Stateless = true
	stateless := mcp.NewStreamableHTTPHandler(server, &with)
	return w.handler(func(r *http.Request, p peeked) http.Handler {
		if isModern(r.Header.Get(revisionHeader)) || isModern(p.revision()) {
			return stateless
		}
		return sessions
	}, opts)
}
