package wakeshift

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A ParsedKey is what a key says of itself.
type ParsedKey struct {
	KID, App string
	Test     bool
}

// ParseKey parses a key as New does.
func ParseKey(text string) (ParsedKey, error) {
	s, err := parseKey(text)
	if err != nil {
		return ParsedKey{}, err
	}
	return ParsedKey{KID: s.kid, App: s.app, Test: s.test}, nil
}

// SchemaForm is a schema as it goes into the manifest.
func SchemaForm(t reflect.Type, given *jsonschema.Schema) (map[string]any, error) {
	s, err := newSchema(t, given)
	if err != nil {
		return nil, err
	}
	return s.form, nil
}

// EncodeFor writes a value for the schema of its type, or for the given one.
func EncodeFor(value any, given *jsonschema.Schema) (json.RawMessage, error) {
	s, err := newSchema(reflect.TypeOf(value), given)
	if err != nil {
		return nil, err
	}
	return s.encode(value)
}

// DecodeHeader decodes an Mcp-Name header.
func DecodeHeader(value string) (string, bool) { return decodeHeader(value) }

// CheckNameHeader compares an Mcp-Name header with a name.
func CheckNameHeader(header http.Header, name string) error { return checkNameHeader(header, name) }

// ParseRetryAfter reads a Retry-After header.
func ParseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	return parseRetryAfter(value, now)
}

// Backoff is a watch's wait after failures.
func Backoff(every time.Duration, failures int) time.Duration { return backoff(every, failures) }

// KeptToolSchemas is how many schemas of tools are kept.
func KeptToolSchemas(w *Wakeshift) int {
	w.schemas.mu.Lock()
	defer w.schemas.mu.Unlock()
	return len(w.schemas.kept)
}

// ToolSchema is the schema of a tool for In.
func ToolSchema[In any](w *Wakeshift, given any) (*jsonschema.Schema, []string, error) {
	return toolSchemaFor[In](w.schemas, given)
}

// RunningWatches is how many watches run.
func RunningWatches(w *Wakeshift) int {
	w.watches.mu.Lock()
	defer w.watches.mu.Unlock()
	return len(w.watches.running)
}

// StartWatch starts the n-th of many watches that only wait to be stopped.
func StartWatch(w *Wakeshift, n int) error {
	key := watchKey{arguments: strconv.Itoa(n)}
	return w.watches.start(key, func(ctx context.Context) { <-ctx.Done() })
}

// Limits under test.
const (
	MaxToolSchemas = maxToolSchemas
	MaxWatches     = maxWatches
	EventsPerPage  = eventsPerPage
	MaxQueued      = maxQueued
)

// Notify sends a notification to the client of a session.
func Notify(ctx context.Context, session *mcp.ServerSession, method string, params json.RawMessage) error {
	return notify(ctx, session, method, params)
}

// RequestID is the id of the request that is being handled.
func RequestID(ctx context.Context) (json.RawMessage, error) { return requestID(ctx) }

// SessionStreams is how many streams of sessions are open.
func SessionStreams(w *Wakeshift) int {
	w.outlets.mu.Lock()
	defer w.outlets.mu.Unlock()
	return len(w.outlets.inSessions)
}

// OpenOutlets is how many requests for a stream the MCP handler works on.
func OpenOutlets(w *Wakeshift) int {
	w.outlets.mu.Lock()
	defer w.outlets.mu.Unlock()
	return len(w.outlets.byKey)
}
