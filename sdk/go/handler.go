package wakeshift

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Handler wraps the streamable HTTP handler of an attached MCP server. It limits
// the body of a request and gives errors of MCP Events the HTTP status they have
// in the protocol, which the MCP SDK does for its own errors only. Everything
// else passes through unchanged. opts are those of [Wakeshift.Attach].
func (w *Wakeshift) Handler(h http.Handler, opts AttachOptions) http.Handler {
	limit := opts.MaxBodyBytes
	if limit == 0 {
		limit = mcp.DefaultMaxRequestBodyBytes
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Body == nil {
			h.ServeHTTP(rw, r)
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
		if id, mismatch := nameMismatch(r.Header, body); mismatch != nil {
			writeError(rw, http.StatusBadRequest, id, mismatch)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(rw, r)
	})
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
func nameMismatch(header http.Header, body []byte) (json.RawMessage, error) {
	if len(header.Values(nameHeader)) == 0 {
		return nil, nil
	}
	var request, params map[string]json.RawMessage // not structs, whose names would match in any case
	var method, name string
	if json.Unmarshal(body, &request) != nil || json.Unmarshal(request["method"], &method) != nil ||
		!strings.HasPrefix(method, "events/") || method == methodList ||
		json.Unmarshal(request["params"], &params) != nil || json.Unmarshal(params["name"], &name) != nil {
		return nil, nil
	}
	return request["id"], checkNameHeader(header, name)
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
