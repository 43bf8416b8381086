package eventstest

import (
	"bytes"
	"context"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/server"
	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

func TestMain(m *testing.M) {
	// net/http lingers half a second on a connection whose request it refused unread.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a transcript with its golden file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got, -update writes it anew):\n%s", path, diff)
	}
}

type siteArgs struct {
	Site string `json:"site"`
	Kind string `json:"kind,omitempty"`
}

type jobArgs struct {
	Job string `json:"job"`
}

type change struct {
	Pages int    `json:"pages"`
	Kind  string `json:"kind,omitempty"`
}

// An app has an event of each sort: site.updated is public, but not for the site "secret"; crawl.finished is for tools only;
// your.turn is public and personal.
type app struct {
	wake *wakeshift.Wakeshift
}

// newApp starts a core, which delivers to loopback addresses unless changed, and an app of it.
func newApp(t *testing.T, change ...func(*server.Options)) *app {
	t.Helper()
	o := server.Options{Data: t.TempDir(), Listen: "127.0.0.1:0", PrivateWebhooks: true, NoAdmin: true,
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))}
	for _, f := range change {
		f(&o)
	}
	running, err := server.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	if _, err := running.Core().CreateApp(t.Context(), "crawler", ""); err != nil {
		t.Fatal(err)
	}
	_, key, err := running.Core().CreateKey(t.Context(), "crawler", "")
	if err != nil {
		t.Fatal(err)
	}
	return newAppOf(t, running.URL(), key.Reveal())
}

// newAppOf is an app of a core that may not be there.
func newAppOf(t *testing.T, core, key string) *app {
	t.Helper()
	wake, err := wakeshift.New(wakeshift.WithCore(core), wakeshift.WithKey(key), wakeshift.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := wake.Close(); err != nil {
			t.Error(err)
		}
	})
	define(t, wake, "site.updated", wakeshift.EventDef[siteArgs, change]{Description: "A site changed", Public: true,
		Text: func(change, siteArgs) string { return "A site changed" },
		Authorize: func(_ context.Context, _ wakeshift.Subscriber, a siteArgs) (bool, error) {
			return a.Site != "secret", nil
		}})
	define(t, wake, "crawl.finished", wakeshift.EventDef[jobArgs, change]{Description: "A crawl finished",
		Text: func(change, jobArgs) string { return "A crawl finished" }})
	define(t, wake, "your.turn", wakeshift.EventDef[jobArgs, change]{Description: "Your turn", Public: true, Personal: true,
		Text: func(change, jobArgs) string { return "Your turn" }})
	return &app{wake: wake}
}

// withoutCore serves an app whose core is away, and gives the server's address.
func withoutCore(t *testing.T) string {
	t.Helper()
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	const key = "wst_test_crawler_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	return newAppOf(t, away.URL, key).serve(t, transports["JSON"])
}

func define[A, P any](t *testing.T, wake *wakeshift.Wakeshift, name string, def wakeshift.EventDef[A, P]) {
	t.Helper()
	if _, err := wakeshift.DefineEvent(wake, name, def); err != nil {
		t.Fatal(err)
	}
}

// serve serves the app's MCP server, for each dialect at its name below the address it gives.
func (a *app) serve(t *testing.T, options mcp.StreamableHTTPOptions) string {
	t.Helper()
	mux := http.NewServeMux()
	for _, dialect := range dialects {
		mux.Handle("/"+dialect.name, a.handler(options, dialect.option))
	}
	mux.Handle("/", a.handler(options, ""))
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return web.URL
}

func (a *app) handler(options mcp.StreamableHTTPOptions, dialect wakeshift.Dialect) http.Handler {
	opts := wakeshift.AttachOptions{Dialect: dialect, Identify: func(_ context.Context, r *wakeshift.Request) wakeshift.Identity {
		return wakeshift.Identity{User: r.Header.Get("X-User")}
	}}
	newServer := func(*http.Request) *mcp.Server {
		server := mcp.NewServer(&mcp.Implementation{Name: "crawler", Version: "1.0.0"}, nil)
		a.wake.Attach(server, opts)
		return server
	}
	return a.wake.Handler(mcp.NewStreamableHTTPHandler(newServer, &options), opts)
}

// The ways to serve; both must say the same.
var transports = map[string]mcp.StreamableHTTPOptions{
	"JSON": {Stateless: true, JSONResponse: true},
	"SSE":  {Stateless: true},
}

// post sends a request and returns the status, and the one message of the answer.
func post(t *testing.T, method, url string, headers map[string]string, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		for line := range bytes.Lines(data) {
			if message, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				data = message
			}
		}
	}
	return response.StatusCode, strings.TrimSpace(string(data))
}

var (
	receivers = regexp.MustCompile(`(https?)://127\.0\.0\.1:\d+`)
	ids       = regexp.MustCompile(`sub_[a-z2-7]{16,32}|c1\.[a-z2-7]{4}\.[0-9a-z]+`)
	moments   = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)
)

// placeholders replaces what differs from run to run.
func placeholders(text string) string {
	text = receivers.ReplaceAllString(text, "$1://‹receiver›")
	return moments.ReplaceAllString(ids.ReplaceAllString(text, "‹id›"), "‹time›")
}
