package wakeshift

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// eventsPerPage is the size of a page of events/list.
	eventsPerPage = 100
	cursorPrefix  = "after:"
)

// A descriptor is an event in the result of events/list.
type descriptor struct {
	Name          string         `json:"name"`
	Description   string         `json:"description"`
	Delivery      []string       `json:"delivery"`
	InputSchema   map[string]any `json:"inputSchema"`
	PayloadSchema map[string]any `json:"payloadSchema"`
}

func (e *event) descriptor() descriptor {
	delivery := []string{"webhook"}
	if e.public {
		delivery = []string{"poll", "push", "webhook"}
	}
	return descriptor{
		Name: e.name, Description: e.description, Delivery: delivery,
		InputSchema: e.arguments.form, PayloadSchema: e.payload.form,
	}
}

// An eventsPage is the result of events/list. TTLMs and CacheScope are those of
// the base protocol's lists: an event may be defined at any time.
type eventsPage struct {
	Events     []descriptor `json:"events"`
	NextCursor string       `json:"nextCursor,omitempty"`
	TTLMs      int          `json:"ttlMs"`
	CacheScope string       `json:"cacheScope"`
}

// list answers events/list, which needs no core.
func (a *Attached) list(p *nativeParams) (any, error) {
	events := a.wake.manifest.sorted()
	start := 0
	if raw, ok := p.member("cursor"); ok {
		if start, ok = afterCursor(raw, events); !ok {
			return nil, invalidParams("cursor: it must be the nextCursor of an earlier page")
		}
	}
	end := min(start+eventsPerPage, len(events))
	page := eventsPage{Events: make([]descriptor, 0, end-start), CacheScope: "private"}
	for _, e := range events[start:end] {
		page.Events = append(page.Events, e.descriptor())
	}
	if end < len(events) {
		page.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + events[end-1].name))
	}
	return page, nil
}

// afterCursor reads a cursor: it names the last event of the page before. One
// that names no event was never given out.
func afterCursor(raw json.RawMessage, events []*event) (int, bool) {
	var cursor string
	if json.Unmarshal(raw, &cursor) != nil {
		return 0, false
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return 0, false
	}
	last, ok := strings.CutPrefix(string(data), cursorPrefix)
	if !ok {
		return 0, false
	}
	for i, e := range events {
		if e.name == last {
			return i + 1, true
		}
	}
	return 0, false
}

func invalidParams(message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: " + message}
}

func internalError() *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "Internal error"}
}
