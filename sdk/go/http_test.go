package wakeshift_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// site is a crawler with all of its transports' options: an event of each kind,
// and a tool.
type site struct {
	core     *fakeCore
	wake     *wakeshift.Wakeshift
	finished *wakeshift.Event[crawlArgs, crawl]
	updated  *wakeshift.Event[siteArgs, crawl]
	made     atomic.Int64 // servers
}

func newSite(t *testing.T) *site {
	t.Helper()
	core := startCore(t)
	s := &site{core: core, wake: newWake(t, core)}
	s.finished = define(t, s.wake, "crawl.finished", crawlEvent())
	s.updated = define(t, s.wake, "site.updated", siteEvent())
	return s
}

func (s *site) server() *mcp.Server {
	s.made.Add(1)
	return attachTool(newServer(), s.wake, subscribing(s.finished))
}

// serve serves the site over HTTP; with one server for all, or one a request.
func (s *site) serve(t *testing.T, perRequest bool, options mcp.StreamableHTTPOptions) string {
	t.Helper()
	one := s.server()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		if perRequest {
			return s.server()
		}
		return one
	}, &options)
	server := httptest.NewServer(s.wake.Handler(handler, wakeshift.AttachOptions{}))
	t.Cleanup(server.Close)
	return server.URL
}

// The ways to serve streamable HTTP, and which revisions each has.
var transports = []struct {
	name       string
	perRequest bool
	options    mcp.StreamableHTTPOptions
	revisions  []string
}{
	{"stateless", false, mcp.StreamableHTTPOptions{Stateless: true}, []string{modern, legacy}},
	{"stateless, JSON, server per request", true, mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}, []string{modern, legacy}},
	{"stateful", false, mcp.StreamableHTTPOptions{}, []string{legacy}},
	{"stateful, JSON", false, mcp.StreamableHTTPOptions{JSONResponse: true}, []string{legacy}},
}

// headers adds headers to the requests of an MCP client.
type headers map[string]string

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	if user, ok := r.Context().Value(userKey{}).(string); ok {
		r.Header.Set("X-User", user)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func dial(t *testing.T, url, client, revision string, h headers) *mcp.ClientSession {
	t.Helper()
	transport := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: h}, DisableStandaloneSSE: true}
	session, err := mcp.NewClient(&mcp.Implementation{Name: client, Version: "2.1.0"}, nil).
		Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// What reaches the core about the caller, over each transport and revision.
func TestCallOverHTTP(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		for _, revision := range transport.revisions {
			t.Run(transport.name+" "+revision, func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				url := s.serve(t, transport.perRequest, transport.options)
				agent := "claude-code/2.1.0 (external, cli)"
				session := dial(t, url, "claude-code", revision, headers{"User-Agent": agent})
				// In a stateful server the context is that of the first request; the
				// headers are of each request.
				for i, user := range []string{"ada", "bob"} {
					ctx := context.WithValue(t.Context(), userKey{}, user)
					res, err := session.CallTool(ctx, &mcp.CallToolParams{
						Name:      "watch",
						Arguments: map[string]any{"job": "j1", "harness": "h", "conversation_id": "c"},
						Meta:      mcp.Meta{"x-thread": map[string]any{"id": "t-1"}},
					})
					if err != nil {
						t.Fatal(err)
					}
					want := []string{"Watching j1.", fmt.Sprintf("You will be woken. session_key=%q", fmt.Sprint("session-", i+1))}
					if diff := cmp.Diff(want, texts(res)); diff != "" {
						t.Errorf("texts (-want +got):\n%s", diff)
					}
					wantCall := map[string]any{
						"client": "claude-code", "client_version": "2.1.0", "user": user, "user_agent": agent, "tool": "watch",
						"harness": "h", "conversation": "c", "meta": map[string]any{"x-thread": map[string]any{"id": "t-1"}},
					}
					if transport.options.Stateless && revision == legacy {
						wantCall["client"] = "" // known at initialize only
						delete(wantCall, "client_version")
					}
					if diff := cmp.Diff(wantCall, s.core.seen("/event-subscriptions")[i].Body["call"]); diff != "" {
						t.Errorf("call (-want +got):\n%s", diff)
					}
				}
			})
		}
	}
}

// The extensions a client declares reach the core by name.
func TestExtensionsReachTheCore(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{modern, legacy} {
		s := newSite(t)
		capabilities := &mcp.ClientCapabilities{}
		capabilities.AddExtension("io.modelcontextprotocol/events", nil)
		capabilities.AddExtension("a/b", map[string]any{"x": 1})
		client := mcp.NewClient(&mcp.Implementation{Name: "c"}, &mcp.ClientOptions{Capabilities: capabilities})
		callTool(t, connectWith(t.Context(), t, s.server(), client, revision), "watch", map[string]any{"job": "j1"})
		call := s.core.seen("/event-subscriptions")[0].Body["call"].(map[string]any)
		if diff := cmp.Diff(any([]any{"a/b", "io.modelcontextprotocol/events"}), call["extensions"]); diff != "" {
			t.Errorf("%s: extensions (-want +got):\n%s", revision, diff)
		}
	}
}

// The user of a verified token, as an app with sign-in identifies.
func TestTokenReachesIdentify(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	server := newServer()
	attached := s.wake.Attach(server, wakeshift.AttachOptions{Identify: func(_ context.Context, r *wakeshift.Request) wakeshift.Identity {
		if r.Token == nil {
			return wakeshift.Identity{}
		}
		return wakeshift.Identity{User: r.Token.UserID}
	}})
	wakeshift.AddTool(attached, &mcp.Tool{Name: "watch"}, subscribing(s.finished))
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: "user of " + token}, nil
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	protect := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})
	web := httptest.NewServer(protect(s.wake.Handler(handler, wakeshift.AttachOptions{})))
	t.Cleanup(web.Close)
	callTool(t, dial(t, web.URL, "c", modern, headers{"Authorization": "Bearer t-1"}), "watch", map[string]any{"job": "j1"})
	call := s.core.seen("/event-subscriptions")[0].Body["call"].(map[string]any)
	if call["user"] != "user of t-1" {
		t.Errorf("the user is %v", call["user"])
	}
}

// A native client over each transport: list, poll, subscribe, unsubscribe.
func TestNativeOverHTTP(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		for _, revision := range transport.revisions {
			t.Run(transport.name+" "+revision, func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				url := s.serve(t, transport.perRequest, transport.options)
				ask := rpc{url: url, revision: revision, client: "events-client", headers: map[string]string{"X-User": "ada"}}
				if !transport.options.Stateless {
					ask.headers["Mcp-Session-Id"] = initialize(t, url)
				}
				event := map[string]any{"name": "site.updated", "arguments": map[string]any{"site": "example.com"}}
				for method, want := range map[string]string{
					"events/list": "events", "events/poll": "cursor", "events/subscribe": "id", "events/unsubscribe": "",
				} {
					ask.method, ask.params = method, event
					got := ask.send(t)
					if got.Status != http.StatusOK || got.Result == nil || want != "" && got.Result[want] == nil {
						t.Errorf("%s: %d %s", method, got.Status, got.Body)
					}
					wantType := any("complete")
					if revision == legacy {
						wantType = nil
					}
					if got.Result["resultType"] != wantType {
						t.Errorf("%s: resultType is %v", method, got.Result["resultType"])
					}
				}
			})
		}
	}
}

// initialize makes a session of the old handshake, ended with the test, and
// returns its id.
func initialize(t *testing.T, url string) string {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + legacy +
		`","capabilities":{},"clientInfo":{"name":"events-client","version":"1"}}}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	id := response.Header.Get("Mcp-Session-Id")
	done := post(t, url, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": legacy, "Mcp-Session-Id": id,
	})
	if id == "" || done.Status != http.StatusAccepted {
		t.Fatalf("no session: %q, %d %s", id, done.Status, done.Body)
	}
	t.Cleanup(func() { endSession(t, url, id) })
	return id
}

func endSession(t *testing.T, url, id string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodDelete, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Mcp-Session-Id", id)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusNoContent && response.StatusCode != http.StatusNotFound { // it was ended before
		t.Errorf("ending a session: HTTP %d", response.StatusCode)
	}
}

// The SDK makes a server for each request more than once: attaching must cost
// nothing but the server.
func TestServersPerRequestShareEverything(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	url := s.serve(t, true, mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	for range 50 {
		reply := rpc{url: url, method: "tools/call", revision: modern, client: "c",
			params: map[string]any{"name": "watch", "arguments": map[string]any{"job": "j1", "session_key": "s"}}}.send(t)
		if reply.Result == nil {
			t.Fatal(reply.Body)
		}
	}
	if s.made.Load() < 50 {
		t.Errorf("%d servers were made", s.made.Load())
	}
	if puts, kept := len(s.core.seen("/manifest")), wakeshift.KeptToolSchemas(s.wake); puts != 1 || kept != 1 {
		t.Errorf("%d manifests were put, %d schemas are kept", puts, kept)
	}
}
