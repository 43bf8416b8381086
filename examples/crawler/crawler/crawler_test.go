package crawler_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/examples/crawler/crawler"
	"github.com/rouse-dev/rouse/rousetest"
	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a crawler with a core of its own and returns its base address.
func serve(t *testing.T) (*crawler.Crawler, string) {
	t.Helper()
	core := rousetest.NewCore(t)
	app, err := crawler.New(wakeshift.WithKey(core.Key), wakeshift.WithCore(core.URL))
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(app.Handler())
	t.Cleanup(func() {
		web.Close()
		if err := app.Close(); err != nil {
			t.Error(err)
		}
	})
	return app, web.URL
}

func connect(t *testing.T, transport mcp.Transport, revision string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "claude-code", Version: "2.1.0"}, nil)
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// userAgent makes a client recognisable where a stateless server is not told its
// name.
type userAgent struct{}

func (userAgent) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", "claude-code/2.1.0 (external, cli)")
	return http.DefaultTransport.RoundTrip(r)
}

// call calls a tool and returns the text of its result.
func call(t *testing.T, session *mcp.ClientSession, tool string, arguments map[string]any) string {
	t.Helper()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, content := range res.Content {
		text.WriteString(content.(*mcp.TextContent).Text + "\n")
	}
	if res.IsError {
		t.Fatal(text.String())
	}
	return text.String()
}

var streamURL = regexp.MustCompile(`u='([^']+)'`)

// A message is a line of the stream by which an agent is woken.
type message struct {
	Type    string        `json:"type"`
	Subject string        `json:"subject"`
	Data    crawler.Crawl `json:"data"`
}

// woken opens the stream named in a tool's text and returns its first event.
func woken(t *testing.T, text string) message {
	t.Helper()
	match := streamURL.FindStringSubmatch(text)
	if match == nil {
		t.Fatalf("no stream in: %s", text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, match[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) == nil && m.Type == "event" {
			return m
		}
	}
	t.Fatalf("the stream ended without an event: %v", lines.Err())
	return message{}
}

func report(t *testing.T, url, body string) (int, string) {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(answer))
}

func TestAgentIsWoken(t *testing.T) {
	t.Parallel()
	app, base := serve(t)
	ours, theirs := mcp.NewInMemoryTransports()
	if _, err := app.Server().Connect(t.Context(), ours, nil); err != nil {
		t.Fatal(err)
	}
	overHTTP := func() mcp.Transport {
		return &mcp.StreamableClientTransport{Endpoint: base + "/mcp", HTTPClient: &http.Client{Transport: userAgent{}}}
	}
	for name, test := range map[string]struct {
		transport mcp.Transport
		revision  string
	}{
		"http-modern": {overHTTP(), "2026-07-28"},
		"http-legacy": {overHTTP(), "2025-11-25"},
		"in-memory":   {theirs, "2026-07-28"},
	} {
		session := connect(t, test.transport, test.revision)
		text := call(t, session, "watch_crawl", map[string]any{"job": name})
		if status, answer := report(t, base+"/crawls/"+name, `{"pages":12}`); status != 200 || answer != `{"matched":1}` {
			t.Errorf("%s: the report was answered %d %s", name, status, answer)
		}
		want := message{"event", "Crawl " + name + " finished: 12 pages", crawler.Crawl{Pages: 12}}
		if diff := cmp.Diff(want, woken(t, text)); diff != "" {
			t.Errorf("%s: woken by (-want +got):\n%s", name, diff)
		}
	}
}

// The watch finds what was reported before or after it began.
func TestPolledCrawl(t *testing.T) {
	t.Parallel()
	_, base := serve(t)
	session := connect(t, &mcp.StreamableClientTransport{Endpoint: base + "/mcp"}, "2026-07-28")
	if status, answer := report(t, base+"/crawls/before", `{"pages":3}`); status != 200 {
		t.Fatal(answer)
	}
	for _, job := range []string{"before", "after"} {
		text := call(t, session, "watch_polled_crawl", map[string]any{"job": job})
		if status, answer := report(t, base+"/crawls/"+job, `{"pages":3}`); status != 200 || answer != `{"matched":0}` {
			t.Errorf("%s: the report was answered %d %s", job, status, answer) // crawl.finished is another event
		}
		if got := woken(t, text); got.Subject != "Crawl "+job+" finished: 3 pages" {
			t.Errorf("%s: woken by %+v", job, got)
		}
	}
}

func TestReportsRefused(t *testing.T) {
	t.Parallel()
	_, base := serve(t)
	for _, body := range []string{"", "{}", `{"pages":"5"}`, `{"pages":5.5}`, "[]", `{"x":"` + strings.Repeat("x", 5000) + `"}`} {
		if status, answer := report(t, base+"/crawls/j1", body); status != http.StatusBadRequest {
			t.Errorf("%.20s: answered %d %s", body, status, answer)
		}
	}
	if status, answer := report(t, base+"/sites/Upper", `{"pages":5}`); status != http.StatusBadRequest || !strings.Contains(answer, "bad_arguments") {
		t.Errorf("a name that cannot route: answered %d %s", status, answer)
	}
	for _, body := range []string{`{"pages":5}`, `{"pages":5,"summary":"` + strings.Repeat("ü", 5000) + `"}`} {
		if status, answer := report(t, base+"/sites/example.com", body); status != 200 {
			t.Errorf("a site: answered %d %s", status, answer)
		}
	}
}

// What events/poll and events/list are sent, and answer.

type pollParams struct {
	mcp.ParamsBase
	Name      string       `json:"name"`
	Arguments crawler.Site `json:"arguments"`
	Cursor    *string      `json:"cursor"`
}

type pollResult struct {
	mcp.ResultBase
	Cursor string `json:"cursor"`
	Events []struct {
		Data crawler.Update `json:"data"`
	} `json:"events"`
}

type listParams struct{ mcp.ParamsBase }

type listResult struct {
	mcp.ResultBase
	Events []struct {
		Name     string   `json:"name"`
		Delivery []string `json:"delivery"`
	} `json:"events"`
}

// Clients of MCP Events may have site.updated in every way, in every revision, with
// sessions and without.
func TestSiteIsForEverybody(t *testing.T) {
	t.Parallel()
	app, base := serve(t)
	stateful := httptest.NewServer(app.StatefulHandler())
	t.Cleanup(stateful.Close)
	client := mcp.NewClient(&mcp.Implementation{Name: "events-client", Version: "1.0.0"}, nil)
	if err := errors.Join(
		mcp.AddSendingCustomMethod[*listParams, *listResult](client, "events/list"),
		mcp.AddSendingCustomMethod[*pollParams, *pollResult](client, "events/poll"),
	); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{base, stateful.URL} {
		for _, revision := range []string{"2026-07-28", "2025-11-25"} {
			transport := &mcp.StreamableClientTransport{Endpoint: url + "/mcp", DisableStandaloneSSE: true}
			session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			listed, err := mcp.CallCustomMethod[*listParams, *listResult](t.Context(), session, "events/list", &listParams{})
			if err != nil {
				t.Fatal(err)
			}
			delivery := map[string][]string{}
			for _, e := range listed.Events {
				delivery[e.Name] = e.Delivery
			}
			want := map[string][]string{"crawl.finished": {"webhook"}, "crawl.polled": {"webhook"}, "site.updated": {"poll", "push", "webhook"}}
			if diff := cmp.Diff(want, delivery); diff != "" {
				t.Errorf("delivery (-want +got):\n%s", diff)
			}
			poll := &pollParams{Name: "site.updated", Arguments: crawler.Site{Site: "example.com"}}
			for _, want := range [][]crawler.Update{nil, {{Pages: 5, Summary: "new prices"}}} {
				polled, err := mcp.CallCustomMethod[*pollParams, *pollResult](t.Context(), session, "events/poll", poll)
				if err != nil {
					t.Fatal(err)
				}
				var got []crawler.Update
				for _, e := range polled.Events {
					got = append(got, e.Data)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("polled (-want +got):\n%s", diff)
				}
				poll.Cursor = &polled.Cursor
				if status, answer := report(t, base+"/sites/example.com", `{"pages":5,"summary":"new prices"}`); status != 200 {
					t.Fatal(answer)
				}
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
