package wakeshift_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

func TestToolSubscribes(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{modern, legacy} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			core := startCore(t)
			wake := newWake(t, core)
			finished := define(t, wake, "crawl.finished", crawlEvent())
			server := attachTool(newServer(), wake, subscribing(finished), wakeshift.Subscribes(finished))
			session := connect(t, server, "claude-code", revision)
			res := callTool(t, session, "watch", map[string]any{"job": "j1"})
			want := []string{"Watching j1.", `You will be woken. session_key="session-1"`}
			if diff := cmp.Diff(want, texts(res)); diff != "" {
				t.Errorf("texts (-want +got):\n%s", diff)
			}
			if res.IsError || res.Meta["core/session"] != "session-1" {
				t.Errorf("isError %v, _meta %v", res.IsError, res.Meta)
			}
			emitted, err := finished.Emit(t.Context(), crawlArgs{"j1"}, crawl{3})
			if err != nil || emitted.Matched != 1 {
				t.Errorf("Emit: %+v, %v", emitted, err)
			}
		})
	}
}

func TestSubscribedFacts(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	finished := define(t, wake, "crawl.finished", crawlEvent())
	var made []wakeshift.Subscribed
	var ended []bool
	server := attachTool(newServer(), wake, func(ctx context.Context, call *wakeshift.ToolCall, in crawlArgs) (*mcp.CallToolResult, any, error) {
		for range 2 {
			s, err := finished.Subscribe(ctx, call, in)
			if err != nil {
				return nil, nil, err
			}
			made = append(made, s)
		}
		for range 2 {
			e, err := finished.Unsubscribe(ctx, call, in)
			if err != nil {
				return nil, nil, err
			}
			ended = append(ended, e)
		}
		return nil, nil, nil
	})
	res := callTool(t, connect(t, server, "claude-code", modern), "watch", map[string]any{"job": "j1"})
	if res.IsError {
		t.Fatal(texts(res))
	}
	agent := wakeshift.Agent{Harness: "test-harness", Via: "client"}
	want := []wakeshift.Subscribed{{ID: "sub-1", Created: true, Agent: agent}, {ID: "sub-1", Agent: agent}}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("subscribed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]bool{true, false}, ended); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
}

func TestOnceIsSent(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	finished := define(t, wake, "crawl.finished", crawlEvent())
	server := attachTool(newServer(), wake, subscribing(finished, wakeshift.Once()))
	callTool(t, connect(t, server, "claude-code", modern), "watch", map[string]any{"job": "j1"})
	body := core.seen("/event-subscriptions")[0].Body
	if body["once"] != true || body["name"] != "crawl.finished" {
		t.Errorf("the body is %v", body)
	}
}

// Subscriptions of one call are of one conversation, even when made at once.
func TestOneCallOneSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core := offlineCore()
		wake := newWake(t, core, wakeshift.WithHTTPClient(core.client()))
		finished := define(t, wake, "crawl.finished", crawlEvent())
		var session string
		server := attachTool(newServer(), wake, func(ctx context.Context, call *wakeshift.ToolCall, in crawlArgs) (*mcp.CallToolResult, any, error) {
			var all sync.WaitGroup
			for _, job := range []string{"a", "b", "c", "d"} {
				all.Go(func() {
					if _, err := finished.Subscribe(ctx, call, crawlArgs{job}); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			session = call.Session()
			return said("ok"), nil, nil
		})
		res := callTool(t, connect(t, server, "claude-code", modern), "watch", map[string]any{"job": "j1"})
		if diff := cmp.Diff([]string{"ok", `You will be woken. session_key="session-1"`}, texts(res)); diff != "" {
			t.Errorf("each distinct text once (-want +got):\n%s", diff)
		}
		if session != "session-1" {
			t.Errorf("the session is %q", session)
		}
		var sessions []any
		for _, r := range core.seen("/event-subscriptions") {
			sessions = append(sessions, r.Body["call"].(map[string]any)["session"])
		}
		if diff := cmp.Diff([]any{nil, "session-1", "session-1", "session-1"}, sessions); diff != "" {
			t.Errorf("sessions (-want +got):\n%s", diff)
		}
		if n := len(core.seen("/topics/annotate")); n != 0 {
			t.Errorf("annotate was asked %d times", n)
		}
	})
}

func TestToolCallFacts(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	var got []string
	server := attachTool(newServer(), wake, func(_ context.Context, call *wakeshift.ToolCall, _ crawlArgs) (*mcp.CallToolResult, any, error) {
		got = []string{call.User(), call.ClientName(), call.Tool(), call.Session(), call.Request().Params.Name}
		return nil, nil, nil
	})
	ctx := context.WithValue(t.Context(), userKey{}, "ada")
	session := connectWith(ctx, t, server, mcp.NewClient(&mcp.Implementation{Name: "claude-code", Version: "2"}, nil), modern)
	callTool(t, session, "watch", map[string]any{"job": "j1", "session_key": "s-9"})
	if diff := cmp.Diff([]string{"ada", "claude-code", "watch", "s-9", "watch"}, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestSubscribeRefusals(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	personal := crawlEvent()
	personal.Personal = true
	guarded := crawlEvent()
	guarded.Authorize = func(_ context.Context, who wakeshift.Subscriber, a crawlArgs) (bool, error) {
		switch a.Job {
		case "error":
			return true, errors.New("database down")
		case "panic":
			panic("a bug")
		}
		return a.Job == "mine" && who == wakeshift.Subscriber{Client: "claude-code"}, nil
	}
	finished := define(t, wake, "crawl.finished", crawlEvent())
	turn := define(t, wake, "your.turn", personal)
	mine := define(t, wake, "crawl.guarded", guarded)
	foreign := define(t, newWake(t, core), "crawl.finished", crawlEvent())
	code := func(want string) func(error) bool {
		return func(err error) bool { return wakeshift.IsCode(err, want) }
	}
	contains := func(want string) func(error) bool {
		return func(err error) bool { return err != nil && strings.Contains(err.Error(), want) }
	}
	var leaked *wakeshift.ToolCall
	server := attachTool(newServer(), wake, func(ctx context.Context, call *wakeshift.ToolCall, in crawlArgs) (*mcp.CallToolResult, any, error) {
		leaked = call
		for name, try := range map[string]struct {
			event *wakeshift.Event[crawlArgs, crawl]
			call  *wakeshift.ToolCall
			job   string
			want  func(error) bool
		}{
			"nil call":              {finished, nil, "j1", contains("ToolCall is nil")},
			"another app's event":   {foreign, call, "j1", contains("another app")},
			"undeclared":            {define(t, wake, "crawl.other", crawlEvent()), call, "j1", contains("Subscribes")},
			"personal without user": {turn, call, "j1", code(wakeshift.CodeForbidden)},
			"not authorized":        {mine, call, "theirs", code(wakeshift.CodeForbidden)},
			"authorize fails":       {mine, call, "error", code(wakeshift.CodeForbidden)},
			"authorize panics":      {mine, call, "panic", code(wakeshift.CodeForbidden)},
		} {
			if _, err := try.event.Subscribe(ctx, try.call, crawlArgs{try.job}); !try.want(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := mine.Subscribe(ctx, call, crawlArgs{"mine"}); err != nil {
			t.Errorf("authorized: %v", err)
		}
		return said("ok"), nil, nil
	}, wakeshift.Subscribes(finished, turn, mine))
	callTool(t, connect(t, server, "claude-code", modern), "watch", map[string]any{"job": "j1"})
	if _, err := finished.Subscribe(t.Context(), leaked, crawlArgs{"j1"}); !contains("has ended")(err) {
		t.Errorf("after the call: %v", err)
	}
	if n := len(core.seen("/event-subscriptions")); n != 1 {
		t.Errorf("%d subscriptions reached the core", n)
	}
}

func TestOnSubscribe(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	var got []wakeshift.Subscription[crawlArgs]
	def := crawlEvent()
	def.OnSubscribe = func(_ context.Context, s wakeshift.Subscription[crawlArgs]) {
		got = append(got, s)
		panic("a bug in the hook")
	}
	finished := define(t, wake, "crawl.finished", def)
	server := attachTool(newServer(), wake, subscribing(finished))
	res := callTool(t, connect(t, server, "claude-code", modern), "watch", map[string]any{"job": "j1"})
	want := []wakeshift.Subscription[crawlArgs]{{Subscriber: wakeshift.Subscriber{Client: "claude-code"}, ID: "sub-1", Args: crawlArgs{"j1"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("subscriptions (-want +got):\n%s", diff)
	}
	if res.IsError {
		t.Errorf("the hook's panic failed the tool: %v", texts(res))
	}
}

// A panic in Identify must not end the process, nor pass as nobody.
func TestPanickingIdentify(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	finished := define(t, wake, "crawl.finished", crawlEvent())
	server := newServer()
	attached := wake.Attach(server, wakeshift.AttachOptions{Identify: func(_ context.Context, r *wakeshift.Request) wakeshift.Identity {
		return wakeshift.Identity{User: r.Token.UserID} // there is no token
	}})
	wakeshift.AddTool(attached, &mcp.Tool{Name: "watch"}, subscribing(finished))
	session := connect(t, server, "claude-code", modern)
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "watch", Arguments: map[string]any{"job": "j1"}})
	if err == nil || !strings.Contains(err.Error(), "Internal error") {
		t.Errorf("the error is %v", err)
	}
	if n := len(core.seen("")); n != 0 {
		t.Errorf("%d requests reached the core", n)
	}
}
