package wakeshift_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

const theEventTools = `{"tools":[
	{"name":"subscribe_events","title":"Subscribe","description":"Subscribe to events.","input_schema":{"type":"object",
		"properties":{"event":{"type":"string"},"arguments":{"type":"object"}},"required":["event"],"additionalProperties":false}},
	{"name":"unsubscribe_events","description":"End subscriptions.","input_schema":{"type":"object","properties":{}}},
	{"name":"list_subscriptions","description":"List subscriptions.","input_schema":{"type":"object"},"read_only":true},
	{"name":"another","description":"Not one of them.","input_schema":{"type":"object"}}]}`

// withEventTools has the core offer the event tools, to all but native clients,
// and answer calls of them.
func withEventTools(core *fakeCore) {
	core.on(func(r coreRequest) (answer, bool) {
		switch r.Path {
		case "/event-tools":
			extensions, _ := r.Body["call"].(map[string]any)["extensions"].([]any)
			if slices.Contains(extensions, any("io.modelcontextprotocol/events")) {
				return ok(map[string]any{"tools": []any{}}), true
			}
			var body map[string]any
			if err := json.Unmarshal([]byte(theEventTools), &body); err != nil {
				panic(err)
			}
			return ok(body), true
		case "/event-tools/call":
			return ok(map[string]any{
				"text": "Subscribed.", "id": "sub-9", "session": "session-9",
				"addition": map[string]any{"text": "You will be woken.", "meta": map[string]any{"core/session": "session-9"}},
			}), true
		}
		return answer{}, false
	})
}

// toolNames lists a server's tools, page by page.
func toolNames(t *testing.T, session *mcp.ClientSession) (names []string) {
	t.Helper()
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

var withAll = []string{"watch", "subscribe_events", "unsubscribe_events", "list_subscriptions"}

func TestEventToolsAreListed(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		for _, revision := range transport.revisions {
			t.Run(transport.name+" "+revision, func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				withEventTools(s.core)
				url := s.serve(t, transport.perRequest, transport.options)
				session := dial(t, url, "claude-code", revision, headers{"X-User": "ada"})
				for range 2 {
					if diff := cmp.Diff(withAll, toolNames(t, session)); diff != "" {
						t.Errorf("tools (-want +got):\n%s", diff)
					}
				}
				if asked := s.core.seen("/event-tools"); len(asked) != 1 || asked[0].Body["call"].(map[string]any)["user"] != "ada" {
					t.Errorf("the core was asked %d times: %v", len(asked), asked)
				}
			})
		}
	}
	for _, revision := range []string{modern, legacy} {
		s := newSite(t)
		withEventTools(s.core)
		if diff := cmp.Diff(withAll, toolNames(t, connect(t, s.server(), "claude-code", revision))); diff != "" {
			t.Errorf("in memory, %s (-want +got):\n%s", revision, diff)
		}
	}
}

// How the tools look to a client, with the arguments that all tools have.
func TestEventToolOnTheWire(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	withEventTools(s.core)
	url := s.serve(t, true, mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	reply := rpc{url: url, method: "tools/list", revision: modern, client: "c"}.send(t)
	tools, _ := json.MarshalIndent(reply.Result["tools"], "", "  ")
	golden(t, "eventtools.golden", append(tools, '\n'))
	if reply.Result["cacheScope"] != "private" {
		t.Errorf("cacheScope %v: what one client sees is not for all", reply.Result["cacheScope"])
	}
}

func TestEventToolsAreHidden(t *testing.T) {
	t.Parallel()
	own := []string{"watch"}
	list := func(t *testing.T, server *mcp.Server, client *mcp.Client) {
		t.Helper()
		if diff := cmp.Diff(own, toolNames(t, connectWith(t.Context(), t, server, client, modern))); diff != "" {
			t.Errorf("tools (-want +got):\n%s", diff)
		}
	}
	someone := mcp.NewClient(&mcp.Implementation{Name: "c"}, nil)
	t.Run("from a native client", func(t *testing.T) {
		s := newSite(t)
		withEventTools(s.core)
		capabilities := &mcp.ClientCapabilities{}
		capabilities.AddExtension("io.modelcontextprotocol/events", nil)
		list(t, s.server(), mcp.NewClient(&mcp.Implementation{Name: "c"}, &mcp.ClientOptions{Capabilities: capabilities}))
	})
	t.Run("without a public event", func(t *testing.T) {
		core := startCore(t)
		withEventTools(core)
		wake := newWake(t, core)
		server := attachTool(newServer(), wake, subscribing(define(t, wake, "crawl.finished", crawlEvent())))
		list(t, server, someone)
		if asked := core.seen(""); len(asked) != 0 {
			t.Errorf("the core was asked: %v", asked)
		}
	})
	t.Run("when turned off", func(t *testing.T) {
		s := newSite(t)
		withEventTools(s.core)
		server := newServer()
		attached := s.wake.Attach(server, wakeshift.AttachOptions{NoEventTools: true})
		wakeshift.AddTool(attached, &mcp.Tool{Name: "watch"}, subscribing(s.finished))
		list(t, server, someone)
		_, err := connect(t, server, "c", modern).CallTool(t.Context(), &mcp.CallToolParams{Name: "list_subscriptions"})
		if err == nil || !strings.Contains(err.Error(), "unknown tool") {
			t.Errorf("a call: %v", err)
		}
	})
	t.Run("when Identify fails", func(t *testing.T) {
		s := newSite(t)
		withEventTools(s.core)
		server := newServer()
		attached := s.wake.Attach(server, wakeshift.AttachOptions{Identify: func(context.Context, *wakeshift.Request) wakeshift.Identity { panic("oh") }})
		wakeshift.AddTool(attached, &mcp.Tool{Name: "watch"}, subscribing(s.finished))
		list(t, server, someone)
	})
}

// A server without tools of its own has these.
func TestOnlyEventTools(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{modern, legacy} {
		s := newSite(t)
		withEventTools(s.core)
		server := newServer()
		s.wake.Attach(server, wakeshift.AttachOptions{})
		session := connect(t, server, "c", revision)
		if session.InitializeResult().Capabilities.Tools == nil {
			t.Errorf("%s: the capability is missing", revision)
		}
		if diff := cmp.Diff(withAll[1:], toolNames(t, session)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", revision, diff)
		}
	}
}

// A tool of the app wins, whenever it was added and on whatever page it is.
func TestOwnToolOfThatName(t *testing.T) {
	t.Parallel()
	own := func(server *mcp.Server, name string) {
		mcp.AddTool(server, &mcp.Tool{Name: name, Description: "The app's own."},
			func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
				return said("mine"), nil, nil
			})
	}
	for _, pageSize := range []int{0, 1, 2} {
		s := newSite(t)
		withEventTools(s.core)
		server := mcp.NewServer(&mcp.Implementation{Name: "crawler"}, &mcp.ServerOptions{PageSize: pageSize})
		own(server, "list_subscriptions")
		attachTool(server, s.wake, subscribing(s.finished))
		own(server, "subscribe_events")
		session := connect(t, server, "c", modern)
		want := []string{"list_subscriptions", "subscribe_events", "watch", "unsubscribe_events"}
		if diff := cmp.Diff(want, toolNames(t, session)); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", pageSize, diff)
		}
		if got := texts(callTool(t, session, "subscribe_events", nil)); !slices.Equal(got, []string{"mine"}) {
			t.Errorf("pages of %d: %q", pageSize, got)
		}
		if again := toolNames(t, connect(t, server, "c", modern)); !slices.Equal(again, want) {
			t.Errorf("pages of %d: the list of the server was changed: %q", pageSize, again)
		}
	}
}

// What the core said is kept for some minutes, and asked anew when there is
// another event. A core that does not answer is left alone for a while, and its
// absence is logged once.
func TestEventToolsAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core := offlineCore()
		var down atomic.Bool
		withEventTools(core)
		client := core.client()
		working := client.Transport.(roundTripper)
		client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if down.Load() {
				return nil, errors.New("down")
			}
			return working(r)
		})
		var log bytes.Buffer
		wake := newWake(t, core, wakeshift.WithHTTPClient(client), wakeshift.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		define(t, wake, "site.updated", siteEvent())
		server := newServer()
		wake.Attach(server, wakeshift.AttachOptions{})
		session := connect(t, server, "c", legacy)
		see := func(what string, tools, asked int) {
			t.Helper()
			if got, times := len(toolNames(t, session)), len(core.seen("/event-tools")); got != tools || times != asked {
				t.Errorf("%s: %d tools, the core was asked %d times; want %d, %d", what, got, times, tools, asked)
			}
		}
		down.Store(true)
		see("down", 0, 0)
		down.Store(false)
		see("back, but left alone", 0, 0)
		time.Sleep(11 * time.Second)
		see("back", 3, 1)
		time.Sleep(4 * time.Minute)
		see("kept", 3, 1)
		define(t, wake, "other.updated", siteEvent())
		see("another event", 3, 2)
		time.Sleep(6 * time.Minute)
		see("after a while", 3, 3)
		if n := strings.Count(log.String(), "gave no event tools"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, log.String())
		}
	})
}

// A core that does not know the question is not asked all the time.
func TestEventToolsOfAnotherCore(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.core.on(func(r coreRequest) (answer, bool) {
		return refuse(404, "not_found", "no such path"), r.Path == "/event-tools"
	})
	session := connect(t, s.server(), "c", legacy)
	for range 3 {
		if got := toolNames(t, session); !slices.Equal(got, withAll[:1]) {
			t.Errorf("tools %q", got)
		}
	}
	if n := len(s.core.seen("/event-tools")); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestEventToolIsCalled(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{modern, legacy} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			core := startCore(t)
			withEventTools(core)
			wake := newWake(t, core)
			var made []wakeshift.Subscription[siteArgs]
			event := siteEvent()
			event.OnSubscribe = func(_ context.Context, s wakeshift.Subscription[siteArgs]) { made = append(made, s) }
			define(t, wake, "site.updated", event)
			server := newServer()
			wake.Attach(server, wakeshift.AttachOptions{Identify: headerUser})
			ctx := context.WithValue(t.Context(), userKey{}, "ada")
			session := connectWith(ctx, t, server, mcp.NewClient(&mcp.Implementation{Name: "claude-code"}, nil), revision)
			about := map[string]any{"event": "site.updated", "arguments": map[string]any{"site": "a"}}
			asked := maps.Clone(about)
			asked["session_key"], asked["harness"] = "session-8", "h"
			res := callTool(t, session, "subscribe_events", asked)
			if diff := cmp.Diff([]string{"Subscribed.", "You will be woken."}, texts(res)); diff != "" || res.IsError || res.Meta["core/session"] != "session-9" {
				t.Errorf("isError %v, _meta %v, texts (-want +got):\n%s", res.IsError, res.Meta, diff)
			}
			body := core.seen("/event-tools/call")[0].Body
			call := body["call"].(map[string]any)
			if call["session"] != "session-8" || call["harness"] != "h" || call["user"] != "ada" || call["tool"] != "subscribe_events" || body["tool"] != "subscribe_events" {
				t.Errorf("the call is %v", call)
			}
			if diff := cmp.Diff(any(about), body["arguments"]); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			want := []wakeshift.Subscription[siteArgs]{{Subscriber: wakeshift.Subscriber{User: "ada", Client: "claude-code"}, ID: "sub-9", Args: siteArgs{"a"}}}
			if diff := cmp.Diff(want, made); diff != "" {
				t.Errorf("OnSubscribe (-want +got):\n%s", diff)
			}
		})
	}
}

// What the app's own checks say travels with the call. They are made for events
// that are on offer, and for nothing else.
func TestEventToolIsChecked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	withEventTools(s.core)
	event := siteEvent()
	event.Authorize = func(_ context.Context, _ wakeshift.Subscriber, a siteArgs) (bool, error) {
		return a.Site != "secret", nil
	}
	define(t, s.wake, "page.updated", event)
	private := siteEvent()
	private.Public = false
	private.Authorize = func(context.Context, wakeshift.Subscriber, siteArgs) (bool, error) {
		t.Error("Authorize was asked about what is not on offer")
		return false, nil
	}
	define(t, s.wake, "page.hidden", private)
	personal := siteEvent()
	personal.Personal = true
	personal.Authorize = private.Authorize
	define(t, s.wake, "page.yours", personal)
	session := connect(t, s.server(), "c", modern)
	for name, test := range map[string]struct {
		tool      string
		arguments map[string]any
		problem   any
		refused   any
	}{
		"fine":                {"subscribe_events", map[string]any{"event": "page.updated", "arguments": map[string]any{"site": "a"}}, nil, nil},
		"not allowed":         {"subscribe_events", map[string]any{"event": "page.updated", "arguments": map[string]any{"site": "secret"}}, nil, true},
		"personal, as nobody": {"subscribe_events", map[string]any{"event": "page.yours", "arguments": map[string]any{"site": "a"}}, nil, true},
		"not an argument": {"subscribe_events", map[string]any{"event": "page.updated", "arguments": map[string]any{"page": 1}},
			`arguments of page.updated: it has the arguments ["site"] and no others`, nil},
		"no object":          {"subscribe_events", map[string]any{"event": "page.updated", "arguments": 7}, "arguments: they must be an object", nil},
		"not on offer":       {"subscribe_events", map[string]any{"event": "page.hidden", "arguments": map[string]any{"site": "a"}}, nil, true},
		"unknown":            {"subscribe_events", map[string]any{"event": "no.such"}, nil, true},
		"no name":            {"subscribe_events", map[string]any{"event": 7}, nil, true},
		"letting go is free": {"unsubscribe_events", map[string]any{"event": "page.updated", "arguments": map[string]any{"site": "secret"}}, nil, nil},
	} {
		callTool(t, session, test.tool, test.arguments)
		calls := s.core.seen("/event-tools/call")
		body := calls[len(calls)-1].Body
		if body["problem"] != test.problem || body["refused"] != test.refused {
			t.Errorf("%s: problem %v, refused %v", name, body["problem"], body["refused"])
		}
	}
}

func TestEventToolFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		core answer
		want string
	}{
		"refused":         {refuse(404, "unknown_session", "session: there is none"), "session: there is none"},
		"the app's fault": {refuse(401, "unauthorized", "the key is revoked"), "This cannot be done right now. Try it again later."},
		"out of order":    {refuse(500, "internal", "the core failed"), "This cannot be done right now. Try it again later."},
	} {
		s := newSite(t)
		s.core.on(func(r coreRequest) (answer, bool) { return test.core, r.Path == "/event-tools/call" })
		res := callTool(t, connect(t, s.server(), "c", modern), "list_subscriptions", nil)
		if diff := cmp.Diff([]string{test.want}, texts(res)); diff != "" || !res.IsError {
			t.Errorf("%s: isError %v (-want +got):\n%s", name, res.IsError, diff)
		}
	}
}

// What waits for a conversation rides on these tools' results as on others'.
func TestEventToolsAreAnnotated(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.core.on(func(r coreRequest) (answer, bool) {
		return ok(map[string]any{"text": "Nothing."}), r.Path == "/event-tools/call"
	})
	s.core.hold("session-3", "Something waited.")
	res := callTool(t, connect(t, s.server(), "c", modern), "list_subscriptions", map[string]any{"session_key": "session-3"})
	if diff := cmp.Diff([]string{"Nothing.", "Something waited."}, texts(res)); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}
