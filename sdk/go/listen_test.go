package wakeshift_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// listening are the params of subscriptions/listen with a filter.
func listening(filter map[string]any) map[string]any {
	return map[string]any{"_meta": modernMeta("c"), "notifications": filter}
}

// acknowledged is the acknowledgement of a filter.
func acknowledged(id any, filter map[string]any) message {
	m := note(id, "", map[string]any{"notifications": filter})
	m.Method = "notifications/subscriptions/acknowledged"
	return m
}

// In memory: a change of the list reaches those who asked, under their id.
func TestListenInMemory(t *testing.T) {
	t.Parallel()
	for _, id := range []any{"a-1", 7.0} {
		s := newSite(t)
		client := rawSession(t, s.server(), s.wake.Transport)
		both := map[string]any{"toolsListChanged": true, "eventsListChanged": true}
		client.write(id, "subscriptions/listen", listening(both))
		client.want(acknowledged(id, both))
		define(t, s.wake, "another.event", crawlEvent())
		define(t, s.wake, "yet.another", crawlEvent()) // told together, or one after the other
		client.want(note(id, "list_changed", map[string]any{}))
		client.write(3, "events/list", map[string]any{"_meta": modernMeta("c")})
		for {
			answer, ok := client.read().(*jsonrpc.Response)
			if !ok {
				continue // yet.another, told by itself
			}
			var page struct{ Events []any }
			if err := json.Unmarshal(answer.Result, &page); err != nil || len(page.Events) != 4 {
				t.Errorf("the list has %d events, %v", len(page.Events), err)
			}
			break
		}
	}
}

// Only what was asked for is acknowledged, and only where it can be heard.
func TestListenAcknowledges(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, test := range []struct {
		wrap       func(mcp.Transport) mcp.Transport
		asked, got map[string]any
	}{
		{s.wake.Transport, map[string]any{"eventsListChanged": true}, map[string]any{"eventsListChanged": true}},
		{s.wake.Transport, map[string]any{"eventsListChanged": false, "toolsListChanged": true}, map[string]any{"toolsListChanged": true}},
		{s.wake.Transport, map[string]any{"eventsListChanged": "yes", "toolsListChanged": true}, map[string]any{"toolsListChanged": true}},
		{nil, map[string]any{"eventsListChanged": true, "toolsListChanged": true}, map[string]any{"toolsListChanged": true}},
	} {
		client := rawSession(t, s.server(), test.wrap)
		client.write("x", "subscriptions/listen", listening(test.asked))
		client.want(acknowledged("x", test.got))
	}
}

// Over HTTP, whatever the MCP handler answers in, until Close ends the request.
func TestListenOverHTTP(t *testing.T) {
	t.Parallel()
	for _, options := range []mcp.StreamableHTTPOptions{{Stateless: true}, {Stateless: true, JSONResponse: true}} {
		s := newSite(t)
		url := s.serve(t, true, options)
		filter := map[string]any{"eventsListChanged": true}
		c := openRequest(t, http.DefaultClient, url, modern, "subscriptions/listen", "l", listening(filter), nil)
		c.want(acknowledged("l", filter))
		define(t, s.wake, "another.event", crawlEvent())
		c.want(note("l", "list_changed", map[string]any{}))
		if err := s.wake.Close(); err != nil {
			t.Error(err)
		}
		c.want(final("l", modern))
	}
}

// HTTPHandler serves each revision in its own way at one address.
func TestHTTPHandler(t *testing.T) {
	t.Parallel()
	for _, stateless := range []bool{false, true} {
		s := newSite(t)
		url := serveHTTP(t, s.wake.HTTPHandler(func(*http.Request) *mcp.Server { return s.server() },
			&mcp.StreamableHTTPOptions{Stateless: stateless}, wakeshift.AttachOptions{}))
		old := map[string]string{}
		if !stateless {
			old["Mcp-Session-Id"] = initialize(t, url)
		}
		for revision, headers := range map[string]map[string]string{modern: nil, legacy: old} {
			c := openStream(t, url, revision, 1, updatedParams, headers)
			c.want(active(1.0, "c0", false))
			got := rpc{url: url, method: "events/list", revision: revision, client: "c", headers: headers}.send(t)
			if events, _ := got.Result["events"].([]any); len(events) != 2 {
				t.Errorf("stateless %v, %s: listed %s", stateless, revision, got.Body)
			}
		}
	}
}

// In a session a client ends one stream by notifications/cancelled, and all by
// ending the session; other sessions' streams go on.
func TestStreamsOfASession(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	url := s.serve(t, false, mcp.StreamableHTTPOptions{})
	mine, other := initialize(t, url), initialize(t, url)
	if mine == other {
		t.Fatal("there is one session")
	}
	open := func(session string, id any) *sseClient {
		c := openStream(t, url, legacy, id, updatedParams, map[string]string{"Mcp-Session-Id": session})
		c.want(active(id, "c0", false))
		return c
	}
	first, second, third, theirs := open(mine, "1"), open(mine, 1.0), open(mine, 2.0), open(other, 1.0)
	ended := func(what string, c *sseClient) {
		t.Helper()
		if m, ok := c.maybe(); ok {
			t.Errorf("%s: in place of the end came %+v", what, m)
		}
	}
	rpc{url: url, method: "notifications/cancelled", revision: legacy, params: map[string]any{"requestId": 1},
		headers: map[string]string{"Mcp-Session-Id": mine}, notification: true}.send(t)
	ended("cancelled", second)
	s.core.streams.updated(4)
	for id, c := range map[any]*sseClient{"1": first, 2.0: third, 1.0: theirs} {
		c.want(updated(id, 0, 4))
	}
	endSession(t, url, mine)
	ended("the session ended", first)
	ended("the session ended", third)
	s.core.streams.updated(5)
	theirs.want(updated(1.0, 1, 5))
	s.core.streams.await(t, "one stream is open", func(_, open, _ int) bool { return open == 1 })
	if diff := cmp.Diff(1, wakeshift.SessionStreams(s.wake)); diff != "" {
		t.Errorf("streams of sessions (-want +got):\n%s", diff)
	}
}
