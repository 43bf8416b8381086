package rousetest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/rousetest"
	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// net/http lingers half a second on a connection whose request it refused unread, whoever shuts down meanwhile.
var lingering = goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, lingering) }

// patience is for what must come; it is never waited for in full unless a test fails.
const patience = 10 * time.Second

type crawlArgs struct {
	Job string `json:"job"`
}

type crawl struct {
	Pages int `json:"pages"`
}

// A crawler is an app under test: an MCP server with one tool and one event.
type crawler struct {
	finished *wakeshift.Event[crawlArgs, crawl]
	client   *mcp.ClientSession // a client that says it is Claude Code
}

func newCrawler(t *testing.T, core *rousetest.Core, key string) *crawler {
	t.Helper()
	app, err := wakeshift.New(wakeshift.WithCore(core.URL), wakeshift.WithKey(key))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Close() })
	finished, err := wakeshift.DefineEvent(app, "crawl.finished", wakeshift.EventDef[crawlArgs, crawl]{
		Description: "A crawl finished",
		Text:        func(p crawl, a crawlArgs) string { return fmt.Sprintf("Crawl %s finished: %d pages", a.Job, p.Pages) },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "crawler", Version: "1.0.0"}, nil)
	attached := app.Attach(server, wakeshift.AttachOptions{})
	wakeshift.AddTool(attached, &mcp.Tool{Name: "watch_crawl"},
		func(ctx context.Context, call *wakeshift.ToolCall, in crawlArgs) (*mcp.CallToolResult, any, error) {
			if _, err := finished.Subscribe(ctx, call, in, wakeshift.Once()); err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Watching."}}}, nil, nil
		}, wakeshift.Subscribes(finished))
	here, there := mcp.NewInMemoryTransports()
	serving, err := server.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = serving.Wait() })
	client, err := mcp.NewClient(&mcp.Implementation{Name: "claude-code", Version: "2.1.0"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return &crawler{finished: finished, client: client}
}

// watch calls the tool and returns the text of its result.
func (c *crawler) watch(t *testing.T, job string) (text string) {
	t.Helper()
	result, err := c.client.CallTool(t.Context(), &mcp.CallToolParams{Name: "watch_crawl", Arguments: crawlArgs{Job: job}})
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range result.Content {
		text += content.(*mcp.TextContent).Text + "\n"
	}
	return text
}

func TestAnAgentIsWoken(t *testing.T) {
	t.Parallel()
	core := rousetest.NewCore(t)
	app := newCrawler(t, core, core.Key)
	monitor := core.Monitor(app.watch(t, "j1"))
	emitted, err := app.finished.Emit(t.Context(), crawlArgs{"j1"}, crawl{12})
	if err != nil || emitted.Matched != 1 {
		t.Fatalf("emitted %+v, %v", emitted, err)
	}
	got := monitor.Next(patience)
	want := rousetest.Message{Type: "event", Subject: "Crawl j1 finished: 12 pages", Data: []byte(`{"pages":12}`)}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(rousetest.Message{}, "ID")); diff != "" || got.ID == "" {
		t.Errorf("the message (-want +got), id %q:\n%s", got.ID, diff)
	}
	monitor.Ended(patience) // the subscription was for one event
}

func TestEmitAndSubscriptions(t *testing.T) {
	t.Parallel()
	core := rousetest.NewCore(t)
	app := newCrawler(t, core, core.Key)
	monitor := core.Monitor(app.watch(t, "j1"))
	subscribed := []rousetest.Subscription{{Event: "crawl.finished", Topic: "ev/crawl.finished/j1", Arguments: []byte(`{"job":"j1"}`),
		Client: "claude-code", Connected: true}}
	if diff := cmp.Diff(subscribed, core.Subscriptions()); diff != "" {
		t.Errorf("subscriptions (-want +got):\n%s", diff)
	}
	e := rousetest.Event{Name: "crawl.finished", Arguments: crawlArgs{"j1"}, Payload: crawl{3}, Text: "Done", ID: "once"}
	for _, want := range []rousetest.Emitted{{Matched: 1}, {Matched: 1, Duplicate: true}} {
		if got := core.Emit(e); got != want {
			t.Errorf("emitted %+v; want %+v", got, want)
		}
	}
	if got := monitor.Next(patience); got.Subject != "Done" {
		t.Errorf("subject %q; want the text that was given", got.Subject)
	}
	if left := core.Subscriptions(); left != nil {
		t.Errorf("a once subscription is left: %+v", left)
	}
}

func TestAppsAreApart(t *testing.T) {
	t.Parallel()
	core := rousetest.NewCore(t)
	second := core.NewApp("second")
	if second.Key == core.Key || second.ID != "second" {
		t.Fatalf("the second app is %q", second.ID)
	}
	newCrawler(t, core, core.Key).watch(t, "j1")
	other := newCrawler(t, core, second.Key)
	if emitted, err := other.finished.Emit(t.Context(), crawlArgs{"j1"}, crawl{1}); err != nil || emitted.Matched != 0 {
		t.Errorf("emitted %+v, %v; want nobody of the other app", emitted, err)
	}
}

func TestSetenv(t *testing.T) {
	core := rousetest.NewCore(t)
	core.Setenv()
	app, err := wakeshift.New() // reads both
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	started, err := wakeshift.DefineEvent(app, "crawl.started", wakeshift.EventDef[crawlArgs, crawl]{Description: "A crawl started",
		Text: func(crawl, crawlArgs) string { return "started" }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := started.Emit(t.Context(), crawlArgs{"j1"}, crawl{}); err != nil {
		t.Error(err)
	}
}
