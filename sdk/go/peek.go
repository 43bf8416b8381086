package wakeshift

import (
	"encoding/json"
	"strings"
)

// A peeked is what [Wakeshift.Handler] has to know of a body before the MCP
// handler reads it. A body that is no single request has no method.
type peeked struct {
	method string
	id     json.RawMessage // as it came; empty without one
	params json.RawMessage
}

// peek reads a body. The names of members match in their own case alone, as the
// MCP SDK has it.
func peek(body []byte) peeked {
	var members map[string]json.RawMessage // not a struct, whose names would match in any case
	var p peeked
	if json.Unmarshal(body, &members) != nil || json.Unmarshal(members["method"], &p.method) != nil {
		return peeked{}
	}
	p.id, p.params = members["id"], members["params"]
	return p
}

// name is params.name of an events method that has one.
func (p peeked) name() (string, bool) {
	if !strings.HasPrefix(p.method, "events/") || p.method == methodList {
		return "", false
	}
	var params map[string]json.RawMessage
	var name string
	if json.Unmarshal(p.params, &params) != nil || json.Unmarshal(params["name"], &name) != nil {
		return "", false
	}
	return name, true
}

// revision is the revision of the protocol that the request is of, if it says so.
func (p peeked) revision() string {
	var params, meta map[string]json.RawMessage
	var revision string
	if json.Unmarshal(p.params, &params) != nil || json.Unmarshal(params["_meta"], &meta) != nil ||
		json.Unmarshal(meta[revisionKey], &revision) != nil {
		return ""
	}
	return revision
}

// revisionKey names the revision in _meta.
const revisionKey = metaPrefix + "protocolVersion"
