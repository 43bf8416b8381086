package wakeshift_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

const woken = `You will be woken. session_key="session-1"`

// What a tool returns, and what its caller then sees after a subscription.
func TestAdditions(t *testing.T) {
	t.Parallel()
	failing := func(err error) func() (*mcp.CallToolResult, any, error) {
		return func() (*mcp.CallToolResult, any, error) { return nil, nil, err }
	}
	for name, test := range map[string]struct {
		returns func() (*mcp.CallToolResult, any, error)
		texts   []string
		isError bool
	}{
		// The MCP SDK writes to a result, so each call has one of its own.
		"text":         {func() (*mcp.CallToolResult, any, error) { return said("hello"), nil, nil }, []string{"hello", woken}, false},
		"nothing":      {failing(nil), []string{woken}, false},
		"an error":     {failing(errors.New("too late")), []string{"too late", woken}, true},
		"a wire error": {failing(&jsonrpc.Error{Code: -32602, Message: "bad job"}), []string{"bad job", woken}, true},
		"an error with text": {func() (*mcp.CallToolResult, any, error) {
			res := said("failed")
			res.IsError = true
			return res, nil, nil
		}, []string{"failed", woken}, true},
	} {
		for _, revision := range []string{modern, legacy} {
			t.Run(name+" "+revision, func(t *testing.T) {
				t.Parallel()
				wake := newWake(t, startCore(t))
				finished := define(t, wake, "crawl.finished", crawlEvent())
				server := attachTool(newServer(), wake, func(ctx context.Context, call *wakeshift.ToolCall, in crawlArgs) (*mcp.CallToolResult, any, error) {
					if _, err := finished.Subscribe(ctx, call, in); err != nil {
						t.Error(err)
					}
					return test.returns()
				})
				res := callTool(t, connect(t, server, "claude-code", revision), "watch", map[string]any{"job": "j1"})
				if diff := cmp.Diff(test.texts, texts(res)); diff != "" {
					t.Errorf("texts (-want +got):\n%s", diff)
				}
				if res.IsError != test.isError || res.Meta["core/session"] != "session-1" {
					t.Errorf("isError %v, _meta %v", res.IsError, res.Meta)
				}
			})
		}
	}
}

// The text the SDK makes of structured output stays, and output that is no good
// does not lose the addition.
func TestAdditionsToStructuredOutput(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	finished := define(t, wake, "crawl.finished", crawlEvent())
	server := newServer()
	attached := wake.Attach(server, wakeshift.AttachOptions{})
	type out struct {
		Watching string `json:"watching"`
	}
	wakeshift.AddTool(attached, &mcp.Tool{Name: "good"}, func(ctx context.Context, call *wakeshift.ToolCall, in crawlArgs) (*mcp.CallToolResult, out, error) {
		_, err := finished.Subscribe(ctx, call, in)
		return nil, out{in.Job}, err
	})
	wakeshift.AddTool(attached, &mcp.Tool{Name: "bad", OutputSchema: schemaOf(t, `{"type":"object","required":["missing"]}`)},
		func(ctx context.Context, call *wakeshift.ToolCall, in crawlArgs) (*mcp.CallToolResult, out, error) {
			_, err := finished.Subscribe(ctx, call, in)
			return nil, out{in.Job}, err
		})
	session := connect(t, server, "claude-code", modern)
	good := callTool(t, session, "good", map[string]any{"job": "j1"})
	if diff := cmp.Diff([]string{`{"watching":"j1"}`, woken}, texts(good)); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(any(map[string]any{"watching": "j1"}), good.StructuredContent); diff != "" {
		t.Errorf("structured content (-want +got):\n%s", diff)
	}
	bad := callTool(t, session, "bad", map[string]any{"job": "j1", "session_key": "session-1"})
	if got := texts(bad); !bad.IsError || len(got) != 2 || got[1] != woken {
		t.Errorf("bad output: isError %v, texts %q", bad.IsError, got)
	}
}

// A result that a tool returns to everybody must not collect what is secret to
// one conversation.
func TestSharedResultStaysClean(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	finished := define(t, wake, "crawl.finished", crawlEvent())
	shared := said("Watching.")
	shared.Content = append(make([]mcp.Content, 0, 8), shared.Content...)
	shared.Meta = mcp.Meta{"own": true}
	server := attachTool(newServer(), wake, func(ctx context.Context, call *wakeshift.ToolCall, in crawlArgs) (*mcp.CallToolResult, any, error) {
		_, err := finished.Subscribe(ctx, call, in)
		return shared, nil, err
	})
	for i := range 3 {
		res := callTool(t, connect(t, server, "claude-code", modern), "watch", map[string]any{"job": "j1"})
		want := []string{"Watching.", fmt.Sprintf("You will be woken. session_key=%q", fmt.Sprint("session-", i+1))}
		if diff := cmp.Diff(want, texts(res)); diff != "" {
			t.Errorf("texts (-want +got):\n%s", diff)
		}
		if res.Meta["own"] != true {
			t.Errorf("the tool's own _meta is gone: %v", res.Meta)
		}
	}
	if len(shared.Content) != 1 || shared.Content[:2][1] != nil || shared.Meta["core/session"] != nil {
		t.Error("the shared result was changed")
	}
}

func TestHeldMessagesRideOnResults(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		core := startCore(t)
		core.hold("session-7", "Crawl j0 finished")
		wake := newWake(t, core)
		server := attachTool(newServer(), wake, func(context.Context, *wakeshift.ToolCall, crawlArgs) (*mcp.CallToolResult, any, error) {
			if fails {
				return nil, nil, errors.New("no")
			}
			return said("no"), nil, nil
		})
		session := connect(t, server, "some-client", modern)
		arguments := map[string]any{"job": "j1", "session_key": "session-7"}
		res := callTool(t, session, "watch", arguments)
		if diff := cmp.Diff([]string{"no", "Crawl j0 finished"}, texts(res)); diff != "" || res.Meta["core/held"] != true {
			t.Errorf("fails %v: texts (-want +got):\n%s _meta %v", fails, diff, res.Meta)
		}
		res = callTool(t, session, "watch", arguments)
		if diff := cmp.Diff([]string{"no"}, texts(res)); diff != "" {
			t.Errorf("fails %v: texts of the second call (-want +got):\n%s", fails, diff)
		}
		if n := len(core.seen("/topics/annotate")); n != 2 {
			t.Errorf("annotate was asked %d times", n)
		}
	}
}

// What cannot carry it must not take what waits: it would be lost.
func TestFailedRequestsTakeNothing(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	server := attachTool(newServer(), wake, func(context.Context, *wakeshift.ToolCall, crawlArgs) (*mcp.CallToolResult, any, error) {
		return nil, nil, &jsonrpc.Error{Code: -32602, Message: "bad job"}
	})
	session := connect(t, server, "some-client", modern)
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "watch", Arguments: map[string]any{"job": "j1"}})
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) || wire.Code != -32602 {
		t.Errorf("the error is %v", err)
	}
	if n := len(core.seen("/topics/annotate")); n != 0 {
		t.Errorf("annotate was asked %d times", n)
	}
}

// A core that is down or slow neither fails a tool nor holds it up for long.
func TestAnnotateNeverFailsATool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core := offlineCore()
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		wake := newWake(t, core, wakeshift.WithHTTPClient(client))
		server := attachTool(newServer(), wake, func(context.Context, *wakeshift.ToolCall, crawlArgs) (*mcp.CallToolResult, any, error) {
			return said("fine"), nil, nil
		})
		start := time.Now()
		res := callTool(t, connect(t, server, "c", modern), "watch", map[string]any{"job": "j1"})
		if diff := cmp.Diff([]string{"fine"}, texts(res)); diff != "" || res.IsError {
			t.Errorf("texts (-want +got):\n%s", diff)
		}
		if waited := time.Since(start); waited > 3*time.Second {
			t.Errorf("the tool waited %v", waited)
		}
	})
}

// A subscription that failed is none: what waits is asked for.
func TestAnnotateAfterAFailedSubscription(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	core.on(func(r coreRequest) (answer, bool) {
		return refuse(400, "subscription_limit", "at most 1,000 a conversation"), r.Path == "/event-subscriptions"
	})
	core.hold("session-7", "Crawl j0 finished")
	wake := newWake(t, core)
	finished := define(t, wake, "crawl.finished", crawlEvent())
	server := attachTool(newServer(), wake, subscribing(finished))
	res := callTool(t, connect(t, server, "c", modern), "watch", map[string]any{"job": "j1", "session_key": "session-7"})
	want := []string{"wakeshift: subscription_limit (400): at most 1,000 a conversation", "Crawl j0 finished"}
	if diff := cmp.Diff(want, texts(res)); diff != "" || !res.IsError {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}

// A tool that asks for input is called again; only then the result may carry an
// addition.
func TestInputRequests(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{modern, legacy} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			core := startCore(t)
			wake := newWake(t, core)
			finished := define(t, wake, "crawl.finished", crawlEvent())
			server := attachTool(newServer(), wake, func(ctx context.Context, call *wakeshift.ToolCall, in crawlArgs) (*mcp.CallToolResult, any, error) {
				if _, err := finished.Subscribe(ctx, call, in); err != nil {
					return nil, nil, err
				}
				if call.Request().Params.InputResponses == nil {
					ask := &mcp.ElicitParams{Message: "Sure?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}
					return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": ask}}, nil, nil
				}
				return said("done"), nil, nil
			})
			client := mcp.NewClient(&mcp.Implementation{Name: "claude-code", Version: "2"}, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
				},
			})
			session := connectWith(t.Context(), t, server, client, revision)
			res := callTool(t, session, "watch", map[string]any{"job": "j1", "session_key": "session-1"})
			if diff := cmp.Diff([]string{"done", woken}, texts(res)); diff != "" || res.IsError {
				t.Errorf("texts (-want +got):\n%s", diff)
			}
			if n := len(core.seen("/topics/annotate")); n != 0 {
				t.Errorf("annotate was asked %d times", n)
			}
		})
	}
}

// An error that makes the client ask its user and call again stays as it is.
func TestURLElicitationPasses(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	finished := define(t, wake, "crawl.finished", crawlEvent())
	server := attachTool(newServer(), wake, func(ctx context.Context, call *wakeshift.ToolCall, in crawlArgs) (*mcp.CallToolResult, any, error) {
		if _, err := finished.Subscribe(ctx, call, in); err != nil {
			return nil, nil, err
		}
		return nil, nil, mcp.URLElicitationRequiredError([]*mcp.ElicitParams{{Mode: "url", URL: "https://example.com", Message: "m", ElicitationID: "e"}})
	})
	session := connect(t, server, "claude-code", modern)
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "watch", Arguments: map[string]any{"job": "j1"}})
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) || wire.Code != mcp.CodeURLElicitationRequired {
		t.Errorf("the error is %v", err)
	}
}

// A middleware that loses the context would lose the addition: the tool is not
// called at all.
func TestLostContext(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	finished := define(t, wake, "crawl.finished", crawlEvent())
	server := newServer()
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(_ context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return next(context.Background(), method, req)
		}
	})
	attachTool(server, wake, subscribing(finished))
	session := connect(t, server, "c", modern)
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "watch", Arguments: map[string]any{"job": "j1"}}); err == nil {
		t.Error("no error")
	}
	if n := len(core.seen("")); n != 0 {
		t.Errorf("%d requests reached the core", n)
	}
}

// Tools of the app that are not added with AddTool are left alone.
func TestOtherTools(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	server := newServer()
	wake.Attach(server, wakeshift.AttachOptions{})
	mcp.AddTool(server, &mcp.Tool{Name: "plain"}, func(context.Context, *mcp.CallToolRequest, crawlArgs) (*mcp.CallToolResult, any, error) {
		return said("plain"), nil, nil
	})
	res := callTool(t, connect(t, server, "c", modern), "plain", map[string]any{"job": "j1"})
	if diff := cmp.Diff([]string{"plain"}, texts(res)); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	if n := len(core.seen("")); n != 0 {
		t.Errorf("%d requests reached the core", n)
	}
}
