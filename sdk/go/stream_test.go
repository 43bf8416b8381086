package wakeshift_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// A message is one of a stream, in the form all transports' tests use.
type message struct {
	Method string         `json:"method"`
	Params map[string]any `json:"params"`
	ID     any            `json:"id"`
	Result map[string]any `json:"result"`
	Error  *rpcError      `json:"error"`
}

// An sseClient reads a stream over HTTP.
type sseClient struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Scanner
	stop     context.CancelFunc
}

var updatedParams = map[string]any{"name": "site.updated", "arguments": map[string]any{"site": "example.com"}}

// openStream asks for a stream; id is as in JSON.
func openStream(t *testing.T, url, revision string, id any, params map[string]any, headers map[string]string) *sseClient {
	t.Helper()
	return openRequest(t, http.DefaultClient, url, revision, "events/stream", id, params, headers)
}

// openRequest sends a request that is answered by a stream.
func openRequest(t *testing.T, client *http.Client, url, revision, method string, id any, params map[string]any, headers map[string]string) *sseClient {
	t.Helper()
	sent := map[string]any{}
	for name, value := range params {
		sent[name] = value
	}
	if revision == modern {
		sent["_meta"] = modernMeta("events-client")
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": sent})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("MCP-Protocol-Version", revision)
	if revision == modern {
		request.Header.Set("Mcp-Method", method)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	c := &sseClient{t: t, response: response, lines: bufio.NewScanner(response.Body), stop: stop}
	c.lines.Buffer(nil, 4<<20)
	t.Cleanup(c.close)
	return c
}

func (c *sseClient) close() {
	c.stop()
	c.response.Body.Close()
}

// next returns the next message; an end of the answer fails the test.
func (c *sseClient) next() message {
	c.t.Helper()
	m, ok := c.maybe()
	if !ok {
		c.t.Fatalf("the answer ended: HTTP %d, %v", c.response.StatusCode, c.lines.Err())
	}
	return m
}

func (c *sseClient) maybe() (message, bool) {
	c.t.Helper()
	for c.lines.Scan() {
		data, ok := strings.CutPrefix(c.lines.Text(), "data: ")
		if !ok {
			continue
		}
		var m message
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			c.t.Fatalf("%q: %v", data, err)
		}
		return m, true
	}
	return message{}, false
}

// want checks the next message, but for what a result says of the server.
func (c *sseClient) want(want message) {
	c.t.Helper()
	got := c.next()
	if meta, ok := got.Result["_meta"].(map[string]any); ok {
		delete(meta, "io.modelcontextprotocol/serverInfo")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("message (-want +got):\n%s", diff)
	}
}

// Messages that a stream with the given id should have.

func note(id any, method string, params map[string]any) message {
	params["_meta"] = map[string]any{"io.modelcontextprotocol/subscriptionId": id}
	return message{Method: "notifications/events/" + method, Params: params}
}

func active(id any, cursor string, truncated bool) message {
	return note(id, "active", map[string]any{"cursor": cursor, "truncated": truncated})
}

func heartbeat(id any, cursor string) message {
	return note(id, "heartbeat", map[string]any{"cursor": cursor})
}

func updated(id any, place, pages int) message {
	return note(id, "event", map[string]any{"eventId": "e" + cursorAt(place)[1:], "name": "site.updated",
		"timestamp": "2026-12-01T00:00:00Z", "data": map[string]any{"pages": float64(pages)}, "cursor": cursorAt(place + 1)})
}

func final(id any, revision string) message {
	result := map[string]any{"_meta": map[string]any{"io.modelcontextprotocol/subscriptionId": id}}
	if revision == modern {
		result["resultType"] = "complete"
	}
	return message{ID: id, Result: result}
}

// streamed serves a site over one of the transports; session is the header a
// stateful one needs.
func (s *site) streamed(t *testing.T, wrapped, perRequest bool, options mcp.StreamableHTTPOptions) (url string, session map[string]string) {
	t.Helper()
	if wrapped {
		url = s.serve(t, perRequest, options)
	} else {
		one := s.server()
		url = serveHTTP(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return one }, &options))
	}
	session = map[string]string{"X-User": "ada"}
	if !options.Stateless {
		session["Mcp-Session-Id"] = initialize(t, url)
	}
	return url, session
}

// A stream's whole life, over each transport and revision, with and without the
// handler of this package where the transport streams by itself.
func TestStreamOverHTTP(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		for _, revision := range transport.revisions {
			for _, wrapped := range []bool{true, false} {
				if !wrapped && transport.options.JSONResponse {
					continue
				}
				name := transport.name + " " + revision
				if wrapped {
					name += " wrapped"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					s := newSite(t)
					url, headers := s.streamed(t, wrapped, transport.perRequest, transport.options)
					for _, id := range []any{"a-1", 7.0} {
						s.core.streams.set(func() { s.core.streams.log = nil })
						c := openStream(t, url, revision, id, updatedParams, headers)
						c.want(active(id, "c0", false))
						if got := c.response.Header.Get("Content-Type"); got != "text/event-stream" {
							t.Errorf("the content type is %q", got)
						}
						if got := c.response.Header.Get("X-Accel-Buffering"); wrapped && got != "no" {
							t.Errorf("X-Accel-Buffering is %q", got)
						}
						s.core.streams.updated(5)
						c.want(updated(id, 0, 5))
						s.core.streams.beat()
						c.want(heartbeat(id, "c1"))
						s.core.streams.terminate()
						c.want(note(id, "terminated", map[string]any{"error": map[string]any{
							"code": -32023.0, "message": "NotFound", "data": map[string]any{"kind": "event"}}}))
						c.want(final(id, revision))
						if m, ok := c.maybe(); ok {
							t.Errorf("after the result came %+v", m)
						}
					}
					call := s.core.streams.opens()[0]["call"].(map[string]any)
					if call["user"] != "ada" || call["client"] != "events-client" && (revision == modern || !transport.options.Stateless) {
						t.Errorf("the call is %v", call)
					}
				})
			}
		}
	}
}

// What is refused is answered as any request, and before any stream.
func TestStreamRefusedOverHTTP(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		for _, revision := range transport.revisions {
			t.Run(transport.name+" "+revision, func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				url, headers := s.streamed(t, true, transport.perRequest, transport.options)
				ask := rpc{url: url, method: "events/stream", revision: revision, client: "c", headers: headers}
				for _, test := range []struct {
					params map[string]any
					code   int
				}{
					{map[string]any{"name": "no.such", "arguments": map[string]any{}}, -32023},
					{map[string]any{"name": "site.updated", "arguments": "x"}, -32602},
					{map[string]any{"name": "site.updated"}, -32602},
					{map[string]any{"arguments": map[string]any{}}, -32602},
				} {
					ask.params = test.params
					got := ask.send(t)
					if got.Error == nil || got.Error.Code != test.code {
						t.Errorf("%v: %d %s", test.params, got.Status, got.Body)
					}
					if status := got.Status; revision == modern && (test.code == -32602) != (status == http.StatusBadRequest) {
						t.Errorf("%v: HTTP %d", test.params, status)
					}
				}
				if _, open, _ := s.core.streams.counts(); open != 0 {
					t.Errorf("%d streams are open", open)
				}
			})
		}
	}
}

// Without the handler of this package, an answer in JSON cannot stream, and says
// what would help.
func TestStreamNeedsTheHandler(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		if !transport.options.JSONResponse {
			continue
		}
		for _, revision := range transport.revisions {
			s := newSite(t)
			url, headers := s.streamed(t, false, false, transport.options)
			got := rpc{url: url, method: "events/stream", revision: revision, client: "c", headers: headers, params: updatedParams}.send(t)
			if got.Error == nil || !strings.Contains(got.Error.Message, "Wakeshift.Handler") || got.Error.Data["feature"] != "deliveryMode" {
				t.Errorf("%s, %s: %d %s", transport.name, revision, got.Status, got.Body)
			}
			s.core.streams.await(t, "no stream is open", func(_, open, _ int) bool { return open == 0 })
		}
	}
}

// A client that goes away ends its stream at the core, and no other.
func TestStreamAborted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	url := s.serve(t, true, mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	kept := openStream(t, url, modern, 1, updatedParams, nil)
	kept.want(active(1.0, "c0", false))
	for range 5 {
		c := openStream(t, url, modern, 1, updatedParams, nil)
		c.want(active(1.0, "c0", false))
		c.close()
	}
	s.core.streams.await(t, "one stream is open", func(conns, open, closed int) bool { return conns == 1 && open == 1 && closed == 5 })
	s.core.streams.updated(1)
	kept.want(updated(1.0, 0, 1))
}

// What the request says reaches the core as it came.
func TestStreamParamsReachTheCore(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	define(t, wake, "site.updated", siteEvent())
	server := newServer()
	opts := wakeshift.AttachOptions{Identify: headerUser, Dialect: wakeshift.DialectFinal}
	wake.Attach(server, opts)
	url := serveHTTP(t, wake.Handler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true}), opts))
	params := map[string]any{"name": "site.updated", "arguments": map[string]any{"site": "a", "wakeshift_voucher": "v"},
		"cursor": "c0", "maxAgeMs": 5.0, "future": []any{1.5}}
	openStream(t, url, modern, "x", params, map[string]string{"X-User": "ada", "User-Agent": "agent/1"}).want(active("x", "c0", false))
	want := map[string]any{"type": "open", "stream": 1.0, "dialect": "final", "call": map[string]any{"client": "events-client",
		"client_version": "9.9", "extensions": []any{"x/ext"}, "user": "ada", "user_agent": "agent/1"}}
	sent := map[string]any{"_meta": modernMeta("events-client")}
	for name, value := range params {
		sent[name] = value
	}
	want["params"] = sent
	if diff := cmp.Diff(want, core.streams.opens()[0]); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
}

// The dialect goes with every native request; one that is unknown is a mistake.
func TestDialect(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	define(t, wake, "site.updated", siteEvent())
	for _, dialect := range []wakeshift.Dialect{"", wakeshift.DialectDraft, wakeshift.DialectChatGPT, wakeshift.DialectFinal} {
		server := newServer()
		wake.Attach(server, wakeshift.AttachOptions{Dialect: dialect})
		url := serveHTTP(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
		for _, method := range []string{"events/poll", "events/subscribe", "events/unsubscribe"} {
			rpc{url: url, method: method, revision: modern, client: "c", params: updatedParams}.send(t)
			seen := core.seen("/" + method)
			if got, _ := seen[len(seen)-1].Body["dialect"].(string); got != string(dialect) {
				t.Errorf("%s with %q: sent %q", method, dialect, got)
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a dialect that does not exist is taken")
		}
	}()
	wake.Attach(newServer(), wakeshift.AttachOptions{Dialect: "latin"})
}

// A client cannot name an outlet: the header is the handler's own.
func TestOutletHeaderIsOurs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	url := s.serve(t, false, mcp.StreamableHTTPOptions{Stateless: true})
	c := openStream(t, url, modern, 1, updatedParams, map[string]string{"X-Wakeshift-Outlet": "mine"})
	c.want(active(1.0, "c0", false))
}

// OnSubscribe is called once for a stream, and Authorize may refuse it.
func TestStreamHooks(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	subscribed := make(chan wakeshift.Subscription[siteArgs], 10)
	def := siteEvent()
	def.Authorize = func(_ context.Context, who wakeshift.Subscriber, _ siteArgs) (bool, error) {
		return who.User == "ada", nil
	}
	def.OnSubscribe = func(_ context.Context, s wakeshift.Subscription[siteArgs]) { subscribed <- s }
	define(t, wake, "site.updated", def)
	server := newServer()
	wake.Attach(server, wakeshift.AttachOptions{Identify: headerUser})
	mcpHandler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	for name, handler := range map[string]http.Handler{"bare": mcpHandler, "wrapped": wake.Handler(mcpHandler, wakeshift.AttachOptions{})} {
		url := serveHTTP(t, handler)
		c := openStream(t, url, modern, 1, updatedParams, map[string]string{"X-User": "ada"})
		c.want(active(1.0, "c0", false))
		want := wakeshift.Subscription[siteArgs]{Subscriber: wakeshift.Subscriber{User: "ada", Client: "events-client", Native: true}, Args: siteArgs{"example.com"}}
		if diff := cmp.Diff(want, <-subscribed); diff != "" {
			t.Errorf("%s: OnSubscribe (-want +got):\n%s", name, diff)
		}
		got := rpc{url: url, method: "events/stream", revision: modern, client: "c", params: updatedParams, headers: map[string]string{"X-User": "bob"}}.send(t)
		if got.Error == nil || got.Error.Code != -32024 {
			t.Errorf("%s: bob is answered %s", name, got.Body)
		}
		if len(subscribed) != 0 {
			t.Errorf("%s: OnSubscribe was called again", name)
		}
		core.streams.terminate() // bare, a client's end would be noticed with the next heartbeat
	}
}

// In memory, as over stdio: with the wrapped transport and without, in both
// revisions, other requests being answered meanwhile.
func TestStreamInMemory(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{modern, legacy} {
		for _, wrapped := range []bool{false, true} {
			s := newSite(t)
			var wrap func(mcp.Transport) mcp.Transport
			if wrapped {
				wrap = s.wake.Transport
			}
			client := rawSession(t, s.server(), wrap)
			meta := map[string]any{}
			if revision == legacy {
				client.write(0, "initialize", map[string]any{"protocolVersion": legacy, "capabilities": map[string]any{},
					"clientInfo": map[string]any{"name": "c", "version": "1"}})
				client.read()
				client.write(nil, "notifications/initialized", map[string]any{})
			} else {
				meta["_meta"] = modernMeta("c")
			}
			params := map[string]any{}
			for _, from := range []map[string]any{meta, updatedParams} {
				for name, value := range from {
					params[name] = value
				}
			}
			client.write("gone", "events/stream", params)
			client.want(active("gone", "c0", false))
			client.write(2, "events/stream", params)
			client.want(active(2.0, "c0", false))
			client.write(3, "events/list", meta)
			if answer, ok := client.read().(*jsonrpc.Response); !ok || answer.Error != nil {
				t.Errorf("events/list beside a stream: %+v", answer)
			}
			client.write(nil, "notifications/cancelled", map[string]any{"requestId": "nobody"})
			client.write(nil, "notifications/cancelled", map[string]any{"requestId": "gone"})
			if !wrapped {
				client.want(final("gone", revision))
			}
			s.core.streams.await(t, "one stream is open", func(_, open, _ int) bool { return open == 1 })
			s.core.streams.updated(5)
			client.want(updated(2.0, 0, 5))
			s.core.streams.terminate()
			if got := client.message(); got.Method != "notifications/events/terminated" {
				t.Errorf("in place of terminated came %+v", got)
			}
			client.want(final(2.0, revision))
			client.write(4, "events/stream", params)
			client.want(active(4.0, "c1", false))
			client.conn.Close() // the end of its input ends a stream
			s.core.streams.await(t, "no stream is open", func(_, open, _ int) bool { return open == 0 })
		}
	}
}

// message reads a message in the form of these tests.
func (c *rawClient) message() message {
	c.t.Helper()
	data, err := jsonrpc.EncodeMessage(c.read())
	if err != nil {
		c.t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		c.t.Fatal(err)
	}
	return m
}

func (c *rawClient) want(want message) {
	c.t.Helper()
	got := c.message()
	if meta, ok := got.Result["_meta"].(map[string]any); ok {
		delete(meta, "io.modelcontextprotocol/serverInfo")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("message (-want +got):\n%s", diff)
	}
}

// Close ends streams with the result of their requests.
func TestCloseEndsStreams(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	url := s.serve(t, false, mcp.StreamableHTTPOptions{Stateless: true})
	c := openStream(t, url, modern, "a", updatedParams, nil)
	c.want(active("a", "c0", false))
	client := rawSession(t, s.server(), s.wake.Transport)
	params := map[string]any{"_meta": modernMeta("c"), "name": "site.updated", "arguments": map[string]any{"site": "example.com"}}
	client.write("b", "events/stream", params)
	client.want(active("b", "c0", false))
	if err := s.wake.Close(); err != nil {
		t.Error(err)
	}
	c.want(final("a", modern))
	client.want(final("b", modern))
	got := rpc{url: url, method: "events/stream", revision: modern, client: "c", params: updatedParams}.send(t)
	if got.Error == nil || got.Error.Code != -32603 {
		t.Errorf("after Close: %s", got.Body)
	}
}

// A server's own time limits do not end a stream.
func TestStreamOutlivesTheServersTimeouts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.server() }, &mcp.StreamableHTTPOptions{Stateless: true})
	server := httptest.NewUnstartedServer(s.wake.Handler(handler, wakeshift.AttachOptions{}))
	server.Config.ReadTimeout, server.Config.WriteTimeout = 300*time.Millisecond, 300*time.Millisecond
	server.Start()
	t.Cleanup(server.Close)
	c := openStream(t, server.URL, modern, 1, updatedParams, nil)
	c.want(active(1.0, "c0", false))
	time.Sleep(400 * time.Millisecond) // past both limits, which net/http has no fake time for
	s.core.streams.updated(2)
	c.want(updated(1.0, 0, 2))
}

// In HTTP/2, where many requests share a connection, a stream is ended by the
// end of its request.
func TestStreamOverHTTP2(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.server() }, &mcp.StreamableHTTPOptions{Stateless: true})
	server := httptest.NewUnstartedServer(s.wake.Handler(handler, wakeshift.AttachOptions{}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	c := openRequest(t, server.Client(), server.URL, modern, "events/stream", 1, updatedParams, nil)
	if c.response.ProtoMajor != 2 {
		t.Fatalf("the answer is of %s", c.response.Proto)
	}
	c.want(active(1.0, "c0", false))
	s.core.streams.updated(2)
	c.want(updated(1.0, 0, 2))
	c.close()
	s.core.streams.await(t, "no stream is open", func(_, open, _ int) bool { return open == 0 })
}

// What was set for the answer before is kept, and the server may be shut down while
// a stream is open.
func TestStreamTakesTheConnectionOver(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	handler := s.wake.Handler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.server() },
		&mcp.StreamableHTTPOptions{Stateless: true}), wakeshift.AttachOptions{})
	returned := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Outer", "1")
		handler.ServeHTTP(w, r)
		returned <- struct{}{}
	}))
	t.Cleanup(server.Close)
	c := openStream(t, server.URL, modern, 1, updatedParams, nil)
	<-returned
	if got := c.response.Header; got.Get("X-Outer") != "1" || got.Get("Date") == "" || !c.response.Close {
		t.Errorf("the headers are %v", got)
	}
	if err := server.Config.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	c.want(active(1.0, "c0", false))
	s.core.streams.updated(2)
	c.want(updated(1.0, 0, 2))
	if err := s.wake.Close(); err != nil {
		t.Error(err)
	}
	c.want(final(1.0, modern))
}

// A stuckWriter is an answer whose client reads no event until it is let.
type stuckWriter struct {
	http.ResponseWriter
	let <-chan struct{}
}

func (w stuckWriter) Write(data []byte) (int, error) {
	if bytes.Contains(data, []byte("eventId")) {
		<-w.let
	}
	return w.ResponseWriter.Write(data)
}

func (w stuckWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

// A slow client gets everything, in order, though little of it is kept here, and
// holds up nobody.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	let := make(chan struct{})
	handler := s.wake.Handler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.server() },
		&mcp.StreamableHTTPOptions{Stateless: true}), wakeshift.AttachOptions{})
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Slow") != "" {
			w = stuckWriter{w, let}
		}
		handler.ServeHTTP(w, r)
	}))
	slow := openStream(t, url, modern, 1, updatedParams, map[string]string{"X-Slow": "1"})
	slow.want(active(1.0, "c0", false))
	quick := openStream(t, url, modern, 2, updatedParams, nil)
	quick.want(active(2.0, "c0", false))
	const events = 3*wakeshift.MaxQueued + 7
	for n := range events {
		s.core.streams.updated(n)
		quick.want(updated(2.0, n, n))
	}
	s.core.streams.await(t, "the slow client's stream is put down", func(_, open, closed int) bool { return open == 1 && closed == 1 })
	close(let)
	for n := 0; n < events; {
		m := slow.next()
		if m.Method == "notifications/events/heartbeat" {
			continue // it was taken up again
		}
		if diff := cmp.Diff(updated(1.0, n, n), m); diff != "" {
			t.Fatalf("event %d (-want +got):\n%s", n, diff)
		}
		n++
	}
}

// What the MCP handler refuses passes as it is, and leaves nothing behind.
func TestOtherAnswersPass(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil || r.Header.Get("X-Wakeshift-Outlet") == "" || len(body) == 0 {
			t.Errorf("the handler got %d bytes, %v", len(body), err)
		}
		w.Header().Set("X-Inner", "1")
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "no")
	})
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(`{"method":"events/stream"}`))
	wake.Handler(inner, wakeshift.AttachOptions{}).ServeHTTP(recorder, request)
	if recorder.Code != http.StatusTeapot || recorder.Body.String() != "no" || recorder.Header().Get("X-Inner") != "1" {
		t.Errorf("answered %d %s", recorder.Code, recorder.Body)
	}
	if request.Header.Get("X-Wakeshift-Outlet") != "" || wakeshift.OpenOutlets(wake) != 0 {
		t.Error("the outlet is left behind")
	}
}
