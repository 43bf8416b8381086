package wakeshift_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// A pipeSite is a site with fake time: its core is reached over pipes, and its
// clients call the handler.
type pipeSite struct {
	core    *fakeCore
	wake    *wakeshift.Wakeshift
	handler http.Handler
}

// newPipeSite makes one with site.updated as given. It must be called within a
// bubble of synctest.
func newPipeSite(t *testing.T, def wakeshift.EventDef[siteArgs, crawl]) *pipeSite {
	t.Helper()
	core, client, stop := pipeCore()
	t.Cleanup(stop)
	wake := newWake(t, core, wakeshift.WithHTTPClient(client))
	define(t, wake, "site.updated", def)
	options := mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		server := newServer()
		wake.Attach(server, wakeshift.AttachOptions{})
		return server
	}, &options)
	return &pipeSite{core, wake, wake.Handler(handler, wakeshift.AttachOptions{})}
}

// A pipeClient reads the stream of a pipeSite. It is an http.ResponseWriter.
type pipeClient struct {
	t        *testing.T
	header   http.Header
	messages chan message
	stop     context.CancelFunc
	done     chan struct{} // closed when the handler has returned
}

func (c *pipeClient) Header() http.Header { return c.header }
func (c *pipeClient) WriteHeader(int)     {}
func (c *pipeClient) Flush()              {}

func (c *pipeClient) Write(data []byte) (int, error) {
	var m message
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("data: ")), &m); err != nil {
		c.t.Errorf("%q: %v", data, err)
	}
	c.messages <- m
	return len(data), nil
}

// stream asks for a stream of site.updated with more params.
func (s *pipeSite) stream(t *testing.T, more map[string]any) *pipeClient {
	t.Helper()
	params := map[string]any{"_meta": modernMeta("events-client")}
	for _, from := range []map[string]any{updatedParams, more} {
		for name, value := range from {
			params[name] = value
		}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "events/stream", "params": params})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	request := httptest.NewRequest(http.MethodPost, "/mcp", bytes.NewReader(body)).WithContext(ctx)
	request.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {modern}, "Mcp-Method": {"events/stream"}, "Mcp-Name": {"site.updated"}}
	c := &pipeClient{t: t, header: http.Header{}, messages: make(chan message, 1000), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		s.handler.ServeHTTP(c, request)
	}()
	t.Cleanup(func() {
		stop()
		<-c.done
	})
	return c
}

// next returns the next message, and how long it took.
func (c *pipeClient) next() (message, time.Duration) {
	c.t.Helper()
	began := time.Now()
	select {
	case m := <-c.messages:
		return m, time.Since(began)
	case <-time.After(time.Hour):
		c.t.Fatal("nothing comes")
		return message{}, 0
	}
}

func (c *pipeClient) want(want message) time.Duration {
	c.t.Helper()
	got, took := c.next()
	if meta, ok := got.Result["_meta"].(map[string]any); ok {
		delete(meta, "io.modelcontextprotocol/serverInfo")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("message (-want +got):\n%s", diff)
	}
	return took
}

// quiet checks that nothing comes for a while.
func (c *pipeClient) quiet(d time.Duration) {
	c.t.Helper()
	select {
	case m := <-c.messages:
		c.t.Errorf("there came %+v", m)
	case <-time.After(d):
	}
}

func terminated(code float64, text string, data map[string]any) message {
	failure := map[string]any{"code": code, "message": text}
	if data != nil {
		failure["data"] = data
	}
	return note(1.0, "terminated", map[string]any{"error": failure})
}

// A core that restarts costs a client nothing: its stream goes on where it was.
func TestStreamsReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPipeSite(t, siteEvent())
		var clients []*pipeClient
		for range 3 {
			c := s.stream(t, map[string]any{"maxAgeMs": 60_000})
			c.want(active(1.0, "c0", false))
			clients = append(clients, c)
		}
		s.core.streams.updated(0)
		for _, c := range clients {
			c.want(updated(1.0, 0, 0))
		}
		s.core.streams.restart(true)
		s.core.streams.updated(1)
		time.Sleep(2 * time.Second)
		s.core.streams.up()
		for _, c := range clients {
			c.want(heartbeat(1.0, "c1"))
			c.want(updated(1.0, 1, 1))
		}
		if conns, open, _ := s.core.streams.counts(); conns != 1 || open != 3 {
			t.Errorf("there are %d streams on %d connections", open, conns)
		}
		for _, opened := range s.core.streams.opens()[3:] {
			params := opened["params"].(map[string]any)
			if _, bounded := params["maxAgeMs"]; params["cursor"] != "c1" || bounded {
				t.Errorf("opened again with %v", params)
			}
		}
	})
}

// While the core is gone clients are told once, and hear that their streams live.
func TestStreamsInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPipeSite(t, siteEvent())
		c := s.stream(t, nil)
		c.want(active(1.0, "c0", false))
		s.core.streams.restart(true)
		trouble, took := c.next()
		if trouble.Method != "notifications/events/error" || took < 5*time.Second || took > 7*time.Second {
			t.Errorf("after %v came %+v", took, trouble)
		}
		for range 5 {
			if took := c.want(heartbeat(1.0, "c0")); took < 19*time.Second || took > 25*time.Second {
				t.Errorf("a heartbeat came after %v", took)
			}
		}
		s.core.streams.mu.Lock()
		dials := s.core.streams.dials
		s.core.streams.mu.Unlock()
		if dials < 5 || dials > 40 {
			t.Errorf("in two minutes the core was called %d times", dials)
		}
		s.core.streams.updated(1)
		s.core.streams.up()
		for {
			m, _ := c.next()
			if m.Method == "notifications/events/heartbeat" {
				continue
			}
			if diff := cmp.Diff(updated(1.0, 0, 1), m); diff != "" {
				t.Errorf("after the outage (-want +got):\n%s", diff)
			}
			break
		}
	})
}

// What is not kept any more when the core is back is a gap, which clients hear of.
func TestStreamsReconnectWithAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPipeSite(t, siteEvent())
		c := s.stream(t, nil)
		c.want(active(1.0, "c0", false))
		s.core.streams.restart(true)
		s.core.streams.updated(0)
		s.core.streams.updated(1)
		s.core.streams.set(func() { s.core.streams.since, s.core.streams.down = 1, false })
		c.want(active(1.0, "c1", true))
		c.want(updated(1.0, 1, 1))
	})
}

// Without streams the connection is closed, and made again for the next.
func TestStreamsHangUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPipeSite(t, siteEvent())
		for range 2 {
			c := s.stream(t, nil)
			c.want(active(1.0, "c0", false))
			c.stop()
			<-c.done
			synctest.Wait()
			if conns, open, _ := s.core.streams.counts(); conns != 1 || open != 0 {
				t.Errorf("at first there are %d streams on %d connections", open, conns)
			}
			time.Sleep(35 * time.Second)
			if conns, _, _ := s.core.streams.counts(); conns != 0 {
				t.Errorf("then there are %d connections", conns)
			}
		}
	})
}

// Authorize is asked again while a stream is open, and its no ends the stream, in
// the core's words.
func TestStreamsAskAuthorizeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refusing atomic.Bool
		def := siteEvent()
		def.Authorize = func(context.Context, wakeshift.Subscriber, siteArgs) (bool, error) { return !refusing.Load(), nil }
		s := newPipeSite(t, def)
		c := s.stream(t, nil)
		c.want(active(1.0, "c0", false))
		c.quiet(11 * time.Minute)
		refusing.Store(true)
		if took := c.want(terminated(-32024, "Forbidden", nil)); took > 5*time.Minute+2*time.Second {
			t.Errorf("it took %v", took)
		}
		c.want(final(1.0, modern))
	})
}

// A stream that the core does not take back ends, unless the reason may pass.
func TestStreamsRefusedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPipeSite(t, siteEvent())
		c := s.stream(t, nil)
		c.want(active(1.0, "c0", false))
		limit := map[string]any{"code": -32025, "message": "ResourceExhausted", "data": map[string]any{"limit": "streams", "max": 1}}
		s.core.streams.set(func() { s.core.streams.refusal = limit })
		s.core.streams.restart(false)
		c.quiet(10 * time.Second)
		s.core.streams.set(func() { s.core.streams.refusal = nil })
		c.want(heartbeat(1.0, "c0"))
		gone := map[string]any{"code": -32023, "message": "NotFound", "data": map[string]any{"kind": "event"}}
		s.core.streams.set(func() { s.core.streams.refusal = gone })
		s.core.streams.restart(false)
		c.want(terminated(-32023, "NotFound", map[string]any{"kind": "event"}))
		c.want(final(1.0, modern))
	})
}

// Without a core a stream is refused soon, and one its client gives up before is
// not opened later.
func TestStreamsWithoutACore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPipeSite(t, siteEvent())
		s.core.streams.restart(true)
		gone, c := s.stream(t, nil), s.stream(t, nil)
		time.Sleep(time.Second)
		gone.stop()
		<-gone.done
		if m, took := c.next(); m.Error == nil || m.Error.Code != -32603 || took > 6*time.Second {
			t.Errorf("after %v came %+v", took, m)
		}
		s.core.streams.up()
		time.Sleep(time.Minute)
		if opens := s.core.streams.opens(); len(opens) != 0 {
			t.Errorf("opened %v", opens)
		}
	})
}

// What is too large for one frame is refused, and no other stream hears of it.
func TestStreamsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPipeSite(t, siteEvent())
		c := s.stream(t, nil)
		c.want(active(1.0, "c0", false))
		large := s.stream(t, map[string]any{"future": string(bytes.Repeat([]byte("x"), 251<<10))})
		if m, _ := large.next(); m.Error == nil || m.Error.Code != -32602 {
			t.Errorf("answered %+v", m)
		}
		if opens := s.core.streams.opens(); len(opens) != 1 {
			t.Errorf("%d streams were opened", len(opens))
		}
		s.core.streams.updated(3)
		c.want(updated(1.0, 0, 3))
	})
}

// Close ends streams that wait for the core, too, and in an outage.
func TestStreamsClosedInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPipeSite(t, siteEvent())
		c := s.stream(t, nil)
		c.want(active(1.0, "c0", false))
		s.core.streams.restart(true)
		synctest.Wait()
		waiting := s.stream(t, nil)
		synctest.Wait()
		if err := s.wake.Close(); err != nil {
			t.Error(err)
		}
		c.want(final(1.0, modern))
		if m, _ := waiting.next(); m.Error == nil || m.Error.Code != -32603 {
			t.Errorf("the waiting client was answered %+v", m)
		}
	})
}
