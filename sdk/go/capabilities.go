package wakeshift

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const eventsExtension = "io.modelcontextprotocol/events"

// advertise adds MCP Events to the capabilities in the result of initialize and
// server/discover: as the extension, and as the top-level member that older
// clients read. The SDK's type has no field for the latter, so the result
// becomes a rawResult.
func advertise(res mcp.Result, err error) (mcp.Result, error) {
	if err != nil {
		return nil, err
	}
	var known *mcp.ServerCapabilities
	switch res := res.(type) {
	case *mcp.InitializeResult:
		known = res.Capabilities
	case *mcp.DiscoverResult:
		known = res.Capabilities
	}
	if known == nil {
		return res, nil // another middleware answered in its own way
	}
	known.AddExtension(eventsExtension, map[string]any{"listChanged": true}) // a copy made for this request
	raw, err := newRawResult(res)
	if err != nil {
		return nil, err
	}
	var capabilities map[string]json.RawMessage
	if err := json.Unmarshal(raw.members["capabilities"], &capabilities); err != nil {
		return nil, fmt.Errorf("wakeshift: reading capabilities: %w", err)
	}
	capabilities["events"] = json.RawMessage("{}")
	if raw.members["capabilities"], err = json.Marshal(capabilities); err != nil {
		return nil, fmt.Errorf("wakeshift: writing capabilities: %w", err)
	}
	if _, ok := res.(*mcp.DiscoverResult); ok {
		raw.setResultType(true)
	}
	return raw, nil
}

// A rawResult is a result whose members are JSON already. Its Meta is apart,
// since the SDK writes to it after all middleware.
type rawResult struct {
	mcp.ResultBase
	members map[string]json.RawMessage
}

// newRawResult makes a rawResult of a value that is a JSON object.
func newRawResult(value any) (*rawResult, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("wakeshift: encoding a result: %w", err)
	}
	r := &rawResult{}
	if err := json.Unmarshal(data, &r.members); err != nil {
		return nil, fmt.Errorf("wakeshift: a result is not an object: %w", err)
	}
	if meta, ok := r.members["_meta"]; ok {
		if err := json.Unmarshal(meta, &r.Meta); err != nil {
			return nil, fmt.Errorf("wakeshift: the _meta of a result is not an object: %w", err)
		}
		delete(r.members, "_meta")
	}
	return r, nil
}

// setResultType marks a result as complete for clients of the revision that has
// result types, and as nothing for others. The SDK does so for its own types
// only.
func (r *rawResult) setResultType(modern bool) {
	if !modern {
		delete(r.members, "resultType")
		return
	}
	if _, ok := r.members["resultType"]; !ok {
		r.members["resultType"] = json.RawMessage(`"complete"`)
	}
}

// MarshalJSON writes the members and _meta as one object.
func (r *rawResult) MarshalJSON() ([]byte, error) {
	out := make(map[string]any, len(r.members)+1)
	for name, value := range r.members {
		out[name] = value
	}
	if len(r.Meta) > 0 {
		out["_meta"] = r.Meta
	}
	return json.Marshal(out)
}
