//go:build unix

package sdktest

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// patience is for what must come; it is never waited for in full unless a test fails.
const patience = 30 * time.Second

// An agent is a client of the app, as an agent's program is one.
type agent struct {
	*mcp.ClientSession
	t   *testing.T
	app *app
}

// call calls a tool. An answer that is no result fails the test.
func (a *agent) call(tool string, arguments map[string]any) *mcp.CallToolResult {
	a.t.Helper()
	return a.callWith(tool, arguments, nil)
}

func (a *agent) callWith(tool string, arguments map[string]any, meta mcp.Meta) *mcp.CallToolResult {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	if arguments == nil {
		arguments = map[string]any{}
	}
	result, err := a.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments, Meta: meta})
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	return result
}

// done calls a tool that must succeed, and returns its text.
func (a *agent) done(tool string, arguments map[string]any) string {
	a.t.Helper()
	result := a.call(tool, arguments)
	if result.IsError {
		a.t.Fatalf("%s: %s", tool, text(result))
	}
	return text(result)
}

// facts calls a tool that must succeed, and returns what it says to programs.
func (a *agent) facts(tool string, arguments map[string]any) map[string]any {
	a.t.Helper()
	result := a.call(tool, arguments)
	if result.IsError {
		a.t.Fatalf("%s: %s", tool, text(result))
	}
	return structured(a.t, result)
}

// says calls a tool that must succeed, and checks what it says to programs.
func (a *agent) says(want map[string]any, tool string, arguments map[string]any) {
	a.t.Helper()
	if diff := cmp.Diff(want, a.facts(tool, arguments)); diff != "" {
		a.t.Errorf("%s (-want +got):\n%s", tool, diff)
	}
}

func structured(t *testing.T, result *mcp.CallToolResult) map[string]any {
	t.Helper()
	facts, ok := result.StructuredContent.(map[string]any)
	if !ok {
		t.Fatalf("the result has no facts: %s", text(result))
	}
	return facts
}

func text(result *mcp.CallToolResult) string {
	var parts []string
	for _, content := range result.Content {
		if part, ok := content.(*mcp.TextContent); ok {
			parts = append(parts, part.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// given is the arguments of a tool, by name and value.
func given(pairs ...any) map[string]any {
	arguments := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		arguments[pairs[i].(string)] = pairs[i+1]
	}
	return arguments
}

// about is the arguments of a tool about an event: the event's, and others of the tool itself.
func about(event string, arguments map[string]any, more ...any) map[string]any {
	all := map[string]any{"event": event, "arguments": arguments}
	maps.Copy(all, given(more...))
	return all
}

// refused is what a program sees of an error that the core answered.
func refused(code string, status int) map[string]any {
	return map[string]any{"type": "WakeshiftError", "code": code, "status": float64(status), "reason": ""}
}

// refusedBySDK is what a program sees of arguments the SDK itself does not take.
func refusedBySDK(kind string) map[string]any { return map[string]any{"type": kind} }

// refuses calls a tool that must not succeed, and checks what a program sees of it. It returns what a person does.
func (a *agent) refuses(want map[string]any, tool string, arguments map[string]any) string {
	a.t.Helper()
	result := a.call(tool, arguments)
	if !result.IsError {
		a.t.Fatalf("%s %v is not refused: %s", tool, arguments, text(result))
	}
	if diff := cmp.Diff(want, structured(a.t, result)); diff != "" {
		a.t.Errorf("%s is refused (-want +got):\n%s\n%s", tool, diff, text(result))
	}
	if code, ok := want["code"].(string); ok {
		a.app.refusedWith.Store(code, true)
	}
	return text(result)
}

// nativeMethods are the requests of MCP Events.
var nativeMethods = []string{"events/list", "events/subscribe", "events/unsubscribe", "events/poll", "events/stream"}

// nativeParams and nativeResult are requests of MCP Events and their results, whatever is in them.
type nativeParams struct {
	mcp.ParamsBase
	Name      string         `json:"name,omitempty"`
	Arguments map[string]any `json:"arguments,omitempty"`
	Delivery  *delivery      `json:"delivery,omitempty"`
	Cursor    string         `json:"cursor,omitempty"`
	TTLMs     int            `json:"ttlMs,omitempty"`
	MaxAgeMs  int            `json:"maxAgeMs,omitempty"`
}

type delivery struct {
	Mode   string `json:"mode"`
	URL    string `json:"url"`
	Secret string `json:"secret,omitempty"`
}

type nativeResult struct {
	mcp.ResultBase
	ID             string            `json:"id"`
	RefreshBefore  time.Time         `json:"refreshBefore"`
	Truncated      bool              `json:"truncated"`
	DeliveryStatus json.RawMessage   `json:"deliveryStatus"`
	Events         []json.RawMessage `json:"events"`
}

// native makes a request of MCP Events.
func (a *agent) native(method string, params *nativeParams) (*nativeResult, error) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	return mcp.CallCustomMethod[*nativeParams, *nativeResult](ctx, a.ClientSession, method, params)
}
