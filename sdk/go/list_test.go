package wakeshift_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

func serveHTTP(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func listEvents(t *testing.T, url string, params map[string]any) rawReply {
	t.Helper()
	return rpc{url: url, method: "events/list", params: params, revision: modern, client: "c"}.send(t)
}

func TestListGolden(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	reply := listEvents(t, s.serve(t, false, mcp.StreamableHTTPOptions{Stateless: true}), nil)
	got, err := json.MarshalIndent(reply.Result, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "list.json", append(got, '\n'))
	if n := len(s.core.seen("")); n != 0 {
		t.Errorf("the core was asked %d times", n)
	}
}

// An event defined after Attach is listed too.
func TestListShowsLaterEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	url := s.serve(t, false, mcp.StreamableHTTPOptions{Stateless: true})
	define(t, s.wake, "crawl.added", crawlEvent())
	var names []string
	for _, e := range listEvents(t, url, nil).Result["events"].([]any) {
		names = append(names, e.(map[string]any)["name"].(string))
	}
	if diff := cmp.Diff([]string{"crawl.added", "crawl.finished", "site.updated"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestListWithoutEvents(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	server := newServer()
	wake.Attach(server, wakeshift.AttachOptions{})
	url := serveHTTP(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	if events, ok := listEvents(t, url, nil).Result["events"].([]any); !ok || len(events) != 0 {
		t.Errorf("events is %v", events)
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	count := 2*wakeshift.EventsPerPage + 1
	var want []string
	for i := range count {
		name := fmt.Sprintf("crawl.e%03d", i)
		define(t, wake, name, crawlEvent())
		want = append(want, name)
	}
	server := newServer()
	wake.Attach(server, wakeshift.AttachOptions{})
	url := serveHTTP(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	var got []string
	var sizes []int
	for params := map[string]any(nil); ; {
		result := listEvents(t, url, params).Result
		events, _ := result["events"].([]any)
		sizes = append(sizes, len(events))
		for _, e := range events {
			got = append(got, e.(map[string]any)["name"].(string))
		}
		next, more := result["nextCursor"]
		if !more || len(sizes) > 3 {
			break
		}
		params = map[string]any{"cursor": next}
	}
	if diff := cmp.Diff([]int{100, 100, 1}, sizes); diff != "" {
		t.Errorf("sizes of pages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestListCursorsAreChecked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	url := s.serve(t, false, mcp.StreamableHTTPOptions{Stateless: true})
	encode := base64.RawURLEncoding.EncodeToString
	for _, cursor := range []any{
		"no-such-cursor", "", 7, true, []any{}, map[string]any{}, "site.updated", encode([]byte("site.updated")),
		encode([]byte("after:no.such")), encode([]byte("after:")), encode([]byte("after:site.updated")) + "=",
	} {
		got := listEvents(t, url, map[string]any{"cursor": cursor})
		if got.Error == nil || got.Error.Code != -32602 || got.Status != http.StatusBadRequest {
			t.Errorf("%v: %d %s", cursor, got.Status, got.Body)
		}
	}
	if got := listEvents(t, url, map[string]any{"cursor": nil}); got.Result == nil {
		t.Errorf("null: %s", got.Body)
	}
	if got := listEvents(t, url, map[string]any{"cursor": encode([]byte("after:crawl.finished"))}); len(got.Result["events"].([]any)) != 1 {
		t.Errorf("a good cursor: %s", got.Body)
	}
}
