package wakeshift_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

const extension = "io.modelcontextprotocol/events"

func TestCapabilities(t *testing.T) {
	t.Parallel()
	own := &mcp.ServerCapabilities{Completions: &mcp.CompletionCapabilities{}}
	own.AddExtension("a/b", map[string]any{"own": true})
	options := &mcp.ServerOptions{Capabilities: own, Instructions: "Crawl."}
	wake := newWake(t, startCore(t))
	server := mcp.NewServer(&mcp.Implementation{Name: "crawler", Version: "1.0.0"}, options)
	attachTool(server, wake, func(context.Context, *wakeshift.ToolCall, crawlArgs) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	url := serveHTTP(t, wake.Handler(handler, wakeshift.AttachOptions{}))
	want := map[string]any{
		"completions": map[string]any{}, "tools": map[string]any{"listChanged": true}, "events": map[string]any{},
		"extensions": map[string]any{"a/b": map[string]any{"own": true}, extension: map[string]any{"listChanged": true}},
	}
	for range 2 { // what is added must not pile up
		discovered := rpc{url: url, method: "server/discover", revision: modern, client: "c"}.send(t)
		if diff := cmp.Diff(any(want), discovered.Result["capabilities"]); diff != "" {
			t.Errorf("discovered (-want +got):\n%s", diff)
		}
		for name, want := range map[string]any{"resultType": "complete", "instructions": "Crawl.", "cacheScope": "public", "ttlMs": 0.0} {
			if discovered.Result[name] != want {
				t.Errorf("discovered %s is %v", name, discovered.Result[name])
			}
		}
		meta, _ := discovered.Result["_meta"].(map[string]any)
		if meta["io.modelcontextprotocol/serverInfo"] == nil || discovered.Result["supportedVersions"] == nil {
			t.Errorf("discovered %s", discovered.Body)
		}
		initialized := rpc{url: url, method: "initialize", params: map[string]any{
			"protocolVersion": legacy, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "c", "version": "1"},
		}}.send(t)
		if diff := cmp.Diff(any(want), initialized.Result["capabilities"]); diff != "" {
			t.Errorf("initialized (-want +got):\n%s", diff)
		}
		if initialized.Result["protocolVersion"] != legacy || initialized.Result["resultType"] != nil ||
			initialized.Result["serverInfo"] == nil || initialized.Result["instructions"] != "Crawl." {
			t.Errorf("initialized %s", initialized.Body)
		}
	}
	if own.Extensions[extension] != nil {
		t.Error("the server's own capabilities were changed")
	}
}

// A stateful server has the older revisions only, and says so; its capabilities
// are the same.
func TestCapabilitiesOfAStatefulServer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	got := rpc{url: s.serve(t, false, mcp.StreamableHTTPOptions{}), method: "server/discover", revision: modern, client: "c"}.send(t)
	capabilities, _ := got.Result["capabilities"].(map[string]any)
	if capabilities["events"] == nil || capabilities["extensions"].(map[string]any)[extension] == nil {
		t.Errorf("the reply is %d %s", got.Status, got.Body)
	}
}

// The SDK's client still understands what it is told, in both handshakes.
func TestCapabilitiesForTheClient(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{modern, legacy} {
		s := newSite(t)
		session := connect(t, s.server(), "c", revision)
		result := session.InitializeResult()
		if result == nil || result.Capabilities == nil || result.Capabilities.Extensions[extension] == nil || result.Capabilities.Tools == nil {
			t.Errorf("%s: the client has %+v", revision, result)
		}
	}
}

// A server that refuses the handshake still refuses it.
func TestFailedHandshake(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	url := s.serve(t, false, mcp.StreamableHTTPOptions{Stateless: true})
	got := rpc{url: url, method: "server/discover", revision: legacy, params: map[string]any{}}.send(t)
	if got.Error == nil || got.Error.Code != -32601 {
		t.Errorf("the reply is %d %s", got.Status, got.Body)
	}
}
