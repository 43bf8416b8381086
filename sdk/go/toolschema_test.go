package wakeshift_test

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// The tool as clients list it, with the added arguments.
func TestToolGolden(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	finished := define(t, wake, "crawl.finished", crawlEvent())
	server := attachTool(newServer(), wake, subscribing(finished), wakeshift.Subscribes(finished))
	list, err := connect(t, server, "claude-code", modern).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(list.Tools, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "tool.json", append(got, '\n'))
}

func TestAddedArguments(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	all := []string{"session_key", "harness", "conversation_id"}
	check := func(name string, s *jsonschema.Schema, injected []string, err error, wantInjected, wantOrder []string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(wantInjected, injected); diff != "" {
			t.Errorf("%s: added (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(wantOrder, s.PropertyOrder); diff != "" {
			t.Errorf("%s: order (-want +got):\n%s", name, diff)
		}
		for _, argument := range all {
			if has := s.Properties[argument] != nil; has != (slices.Contains(injected, argument) || name == "collision" || name == "own schema") {
				t.Errorf("%s: has %s: %v", name, argument, has)
			}
			if slices.Contains(s.Required, argument) {
				t.Errorf("%s: %s is required", name, argument)
			}
		}
	}
	s, injected, err := wakeshift.ToolSchema[crawlArgs](wake, nil)
	check("struct", s, injected, err, all, append([]string{"job"}, all...))
	s, injected, err = wakeshift.ToolSchema[*crawlArgs](wake, nil)
	check("pointer", s, injected, err, all, append([]string{"job"}, all...))
	s, injected, err = wakeshift.ToolSchema[any](wake, nil)
	check("any", s, injected, err, all, nil)
	s, injected, err = wakeshift.ToolSchema[map[string]any](wake, nil)
	check("map", s, injected, err, all, nil)
	s, injected, err = wakeshift.ToolSchema[map[string]int](wake, nil)
	check("map of integers", s, injected, err, nil, nil)
	s, injected, err = wakeshift.ToolSchema[struct {
		Key int `json:"session_key,omitempty"`
	}](wake, nil)
	check("collision", s, injected, err, all[1:], all)
	if s.Properties["session_key"].Type != "integer" {
		t.Errorf("the tool's own session_key became %v", s.Properties["session_key"])
	}
	given := `{"type":"object","properties":{"harness":{"type":"boolean"}}}`
	for _, own := range []any{schemaOf(t, given), json.RawMessage(given), map[string]any{
		"type": "object", "properties": map[string]any{"harness": map[string]any{"type": "boolean"}}}} {
		s, injected, err = wakeshift.ToolSchema[map[string]any](wake, own)
		check("own schema", s, injected, err, []string{"session_key", "conversation_id"}, nil)
	}
	if _, _, err := wakeshift.ToolSchema[any](wake, json.RawMessage(`{`)); err == nil {
		t.Error("a broken schema is accepted")
	}
}

// A tool that has an argument of one of the names gets it as its own.
func TestCollidingArgumentIsTheTools(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	type in struct {
		Key int `json:"session_key"`
	}
	server := newServer()
	var got in
	attached := wake.Attach(server, wakeshift.AttachOptions{})
	wakeshift.AddTool(attached, &mcp.Tool{Name: "own"}, func(_ context.Context, _ *wakeshift.ToolCall, i in) (*mcp.CallToolResult, any, error) {
		got = i
		return nil, nil, nil
	})
	callTool(t, connect(t, server, "c", modern), "own", map[string]any{"session_key": 7, "harness": "h", "conversation_id": "v"})
	if got.Key != 7 {
		t.Errorf("the tool got %+v", got)
	}
	call := core.seen("/topics/annotate")[0].Body["call"].(map[string]any)
	if call["session"] != nil || call["harness"] != "h" || call["conversation"] != "v" {
		t.Errorf("the call is %v", call)
	}
}

// The added arguments do not reach a handler that takes a map: one is a secret.
func TestMapsDoNotGetTheAddedArguments(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	server := newServer()
	attached := wake.Attach(server, wakeshift.AttachOptions{})
	var got []any
	wakeshift.AddTool(attached, &mcp.Tool{Name: "map"}, func(_ context.Context, _ *wakeshift.ToolCall, in map[string]any) (*mcp.CallToolResult, any, error) {
		got = append(got, in)
		return nil, nil, nil
	})
	wakeshift.AddTool(attached, &mcp.Tool{Name: "any"}, func(_ context.Context, _ *wakeshift.ToolCall, in any) (*mcp.CallToolResult, any, error) {
		got = append(got, in)
		return nil, nil, nil
	})
	session := connect(t, server, "c", modern)
	for _, tool := range []string{"map", "any"} {
		callTool(t, session, tool, map[string]any{"session_key": "s", "harness": "h", "a": 1})
	}
	want := []any{map[string]any{"a": 1.0}, map[string]any{"a": 1.0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestAddToolLeavesTheToolAlone(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	finished := define(t, wake, "crawl.finished", crawlEvent())
	schema := schemaOf(t, `{"type":"object","properties":{"job":{"type":"string"}},"required":["job"]}`)
	tool := &mcp.Tool{Name: "watch", InputSchema: schema}
	before, err := json.Marshal(tool)
	if err != nil {
		t.Fatal(err)
	}
	attached := wake.Attach(newServer(), wakeshift.AttachOptions{})
	wakeshift.AddTool(attached, tool, subscribing(finished))
	after, err := json.Marshal(tool)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" || tool.InputSchema != any(schema) {
		t.Errorf("the tool was changed:\n%s", diff)
	}
}

func TestAddToolPanics(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	attached := wake.Attach(newServer(), wakeshift.AttachOptions{})
	foreign := define(t, newWake(t, core), "crawl.finished", crawlEvent())
	for name, add := range map[string]func(){
		"another app's event": func() {
			wakeshift.AddTool(attached, &mcp.Tool{Name: "x"}, subscribing(foreign), wakeshift.Subscribes(foreign))
		},
		"broken schema": func() {
			wakeshift.AddTool(attached, &mcp.Tool{Name: "x", InputSchema: json.RawMessage("{")}, subscribing(foreign))
		},
		"no server": func() { wake.Attach(nil, wakeshift.AttachOptions{}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("did not panic")
				}
			}()
			add()
		})
	}
}

// With a server for every request, neither the SDK's cache of schemas nor ours
// may grow.
func TestThousandServers(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	finished := define(t, wake, "crawl.finished", crawlEvent())
	options := &mcp.ServerOptions{SchemaCache: mcp.NewSchemaCache()}
	pointers := map[*jsonschema.Schema]bool{}
	var servers []weak.Pointer[mcp.Server]
	for range 1000 {
		server := mcp.NewServer(&mcp.Implementation{Name: "crawler"}, options)
		servers = append(servers, weak.Make(server))
		attached := wake.Attach(server, wakeshift.AttachOptions{})
		own := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"job": {Type: "string"}}}
		wakeshift.AddTool(attached, &mcp.Tool{Name: "inferred"}, subscribing(finished))
		wakeshift.AddTool(attached, &mcp.Tool{Name: "own", InputSchema: own}, subscribing(finished))
		for _, given := range []any{nil, own} {
			schema, _, err := wakeshift.ToolSchema[crawlArgs](wake, given)
			if err != nil {
				t.Fatal(err)
			}
			pointers[schema] = true // what the SDK's cache goes by
		}
	}
	if kept := wakeshift.KeptToolSchemas(wake); kept != 2 || len(pointers) != 2 {
		t.Errorf("%d schemas are kept, %d pointers were given out", kept, len(pointers))
	}
	runtime.GC()
	servers = slices.DeleteFunc(servers, func(p weak.Pointer[mcp.Server]) bool { return p.Value() == nil })
	if len(servers) > 10 { // the last ones may still be on a stack
		t.Errorf("%d servers are kept", len(servers))
	}
}

// An app that makes schemas up does not fill the memory.
func TestToolSchemasAreLimited(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	for i := range 3 * wakeshift.MaxToolSchemas {
		given := &jsonschema.Schema{Type: "object", MinProperties: &i}
		if _, _, err := wakeshift.ToolSchema[any](wake, given); err != nil {
			t.Fatal(err)
		}
	}
	if kept := wakeshift.KeptToolSchemas(wake); kept > wakeshift.MaxToolSchemas {
		t.Errorf("%d schemas are kept", kept)
	}
}
