package wakeshift

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Handler wraps the streamable HTTP handler of an attached MCP server:
//
//   - events/stream works whatever the MCP handler's options are, and an open
//     stream costs little: where the answer's writer is an [http.Hijacker], its
//     connection is taken over from the server, so that the request is over for
//     whatever wraps this handler, and [Wakeshift.Close] ends the stream, but
//     [http.Server.Close] does not;
//   - clients are told when the list of events changes (eventsListChanged of
//     subscriptions/listen);
//   - the body of a request is limited, and errors of MCP Events get the HTTP
//     status they have in the protocol, which the MCP SDK does for its own errors
//     only.
//
// Everything else passes through unchanged. Without it, streams need an MCP
// handler that answers with server-sent events. opts are those of
// [Wakeshift.Attach].
func (w *Wakeshift) Handler(h http.Handler, opts AttachOptions) http.Handler {
	return w.handler(func(*http.Request, peeked) http.Handler { return h }, opts)
}

// handler is Handler for an MCP handler that is chosen by the request. Requests
// other than POST have nothing to peek at.
func (w *Wakeshift) handler(choose func(*http.Request, peeked) http.Handler, opts AttachOptions) http.Handler {
	limit := opts.MaxBodyBytes
	if limit == 0 {
		limit = mcp.DefaultMaxRequestBodyBytes
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			w.endSession(rw, r, choose(r, peeked{}))
			return
		}
		if r.Method != http.MethodPost || r.Body == nil {
			choose(r, peeked{}).ServeHTTP(rw, r)
			return
		}
		if limit > 0 {
			r.Body = http.MaxBytesReader(rw, r.Body, limit)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			unreadable(rw, err)
			return
		}
		p := peek(body)
		w.post(rw, r, choose(r, p), body, p)
	})
}

// post serves a POST, the body of which was read.
func (w *Wakeshift) post(rw http.ResponseWriter, r *http.Request, h http.Handler, body []byte, p peeked) {
	if mismatch := nameMismatch(r.Header, p); mismatch != nil {
		writeError(rw, http.StatusBadRequest, p.id, mismatch)
		return
	}
	switch p.method {
	case methodStream:
		w.serveStream(rw, r, h, body, p.id)
		return
	case methodListen:
		body = markBody(body, p.params)
	case methodCancelled:
		w.outlets.cancel(r.Header.Get(sessionHeader), p.params)
	}
	h.ServeHTTP(rw, withBody(r, body))
}

// endSession serves a DELETE, which ends a session, and with it its streams if the
// MCP handler agrees.
func (w *Wakeshift) endSession(rw http.ResponseWriter, r *http.Request, h http.Handler) {
	answer := &heldAnswer{header: http.Header{}}
	h.ServeHTTP(answer, r)
	if answer.status < http.StatusMultipleChoices {
		w.outlets.endSession(r.Header.Get(sessionHeader))
	}
	answer.release(rw)
}

// markBody is a body of subscriptions/listen with the filter for events where
// the MCP SDK leaves it alone.
func markBody(body []byte, params json.RawMessage) []byte {
	marked, ok := markListen(params)
	if !ok {
		return body
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return body
	}
	members["params"] = marked
	if changed, err := encodeJSON(members); err == nil {
		return changed
	}
	return body
}

func unreadable(rw http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		http.Error(rw, fmt.Sprintf("request body exceeds %d bytes", tooLarge.Limit), http.StatusRequestEntityTooLarge)
		return
	}
	http.Error(rw, "failed to read body", http.StatusBadRequest)
}

// nameMismatch finds an events request whose Mcp-Name is not its params.name.
// Whatever else is wrong with a request is left to the MCP handler.
func nameMismatch(header http.Header, p peeked) error {
	if len(header.Values(nameHeader)) == 0 {
		return nil
	}
	name, ok := p.name()
	if !ok {
		return nil
	}
	return checkNameHeader(header, name)
}

// writeError answers with a JSON-RPC error. A request without an id has null.
func writeError(rw http.ResponseWriter, status int, id json.RawMessage, failure error) {
	var wire *jsonrpc.Error
	if !errors.As(failure, &wire) {
		wire = internalError()
	}
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(map[string]any{"jsonrpc": "2.0", "id": id, "error": wire}) // the client is gone
}
