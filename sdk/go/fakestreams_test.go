package wakeshift_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// fakeStreams are the streams of a fakeCore, as docs/wire.md says: a log, and
// connections that each carry any number of streams.
type fakeStreams struct {
	mu      sync.Mutex
	log     []fakeOccurrence
	conns   map[*fakeConn]struct{}
	opened  []map[string]any // bodies of "open", in their order
	closed  int              // "close" frames
	refused int              // "refuse" frames
	dials   int
	down    bool
	refusal map[string]any // in answer to every "open"; nil admits
	since   int            // the oldest place of the log that is kept
	changed chan struct{}  // closed when what counts tells may have changed; nil: nobody waits
}

type fakeOccurrence struct {
	name, arguments string
	data            map[string]any
}

type fakeConn struct {
	core *fakeStreams
	conn *websocket.Conn
	out  chan any
	open map[int64]*fakeStream
}

type fakeStream struct {
	number          int64
	name, arguments string
}

// serve is GET /events/streams.
func (f *fakeStreams) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	down := f.down
	f.dials++
	f.mu.Unlock()
	if down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &fakeConn{core: f, conn: conn, out: make(chan any, 100_000), open: map[int64]*fakeStream{}}
	f.mu.Lock()
	f.conns[c] = struct{}{}
	f.tell()
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.conns, c)
		f.tell()
		f.mu.Unlock()
	}()
	go func() {
		for {
			select {
			case frame := <-c.out:
				data, _ := json.Marshal(frame)
				if conn.Write(ctx, websocket.MessageText, data) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			return
		}
		f.mu.Lock()
		c.take(data)
		f.tell()
		f.mu.Unlock()
	}
}

func (c *fakeConn) take(data []byte) {
	var frame struct {
		Type    string         `json:"type"`
		Stream  int64          `json:"stream"`
		Params  map[string]any `json:"params"`
		Refused bool           `json:"refused"`
	}
	var whole map[string]any
	if json.Unmarshal(data, &frame) != nil || json.Unmarshal(data, &whole) != nil {
		panic("the SDK sent " + string(data))
	}
	switch frame.Type {
	case "open":
		c.core.opened = append(c.core.opened, whole)
		c.begin(frame.Stream, frame.Params, frame.Refused)
	case "close":
		c.core.closed++
		delete(c.open, frame.Stream)
	case "refuse":
		c.core.refused++
		c.end(frame.Stream, map[string]any{"code": -32024, "message": "Forbidden"})
	default:
		panic("the SDK sent " + string(data))
	}
}

func (c *fakeConn) begin(number int64, params map[string]any, refused bool) {
	name, _ := params["name"].(string)
	refusal := c.core.refusal
	switch {
	case refused:
		refusal = map[string]any{"code": -32024, "message": "Forbidden", "data": map[string]any{"from": "core"}}
	case name == "no.such":
		refusal = map[string]any{"code": -32023, "message": "NotFound", "data": map[string]any{"from": "core"}}
	}
	if refusal != nil {
		c.out <- map[string]any{"stream": number, "error": refusal}
		return
	}
	st := &fakeStream{number: number, name: name, arguments: key(params)}
	from, truncated := len(c.core.log), false
	if cursor, ok := params["cursor"].(string); ok {
		at, err := strconv.Atoi(strings.TrimPrefix(cursor, "c"))
		from, truncated = at, err != nil || at < c.core.since
		if truncated {
			from = max(at, c.core.since)
		}
	}
	c.open[number] = st
	c.notify(number, "active", map[string]any{"cursor": cursorAt(from), "truncated": truncated})
	for at := from; at < len(c.core.log); at++ {
		c.event(st, at)
	}
}

func (c *fakeConn) event(st *fakeStream, at int) {
	o := c.core.log[at]
	if o.name != st.name || o.arguments != st.arguments {
		return
	}
	c.notify(st.number, "event", map[string]any{"eventId": fmt.Sprint("e", at), "name": o.name,
		"timestamp": "2026-12-01T00:00:00Z", "data": o.data, "cursor": cursorAt(at + 1)})
}

func (c *fakeConn) notify(number int64, method string, params map[string]any) {
	c.out <- map[string]any{"stream": number, "method": "notifications/events/" + method, "params": params}
}

func (c *fakeConn) end(number int64, failure map[string]any) {
	c.notify(number, "terminated", map[string]any{"error": failure})
	c.out <- map[string]any{"stream": number, "end": true}
	delete(c.open, number)
}

func cursorAt(place int) string { return fmt.Sprint("c", place) }

// publish appends to the log and tells the streams.
func (f *fakeStreams) publish(name string, arguments, data map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fakeOccurrence{name, key(map[string]any{"arguments": arguments}), data})
	for c := range f.conns {
		for _, st := range c.open {
			c.event(st, len(f.log)-1)
		}
	}
}

// updated publishes site.updated for the site example.com.
func (f *fakeStreams) updated(pages int) {
	f.publish("site.updated", map[string]any{"site": "example.com"}, map[string]any{"pages": pages})
}

// beat sends every stream a heartbeat.
func (f *fakeStreams) beat() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		for number := range c.open {
			c.notify(number, "heartbeat", map[string]any{"cursor": cursorAt(len(f.log))})
		}
	}
}

// terminate ends every stream.
func (f *fakeStreams) terminate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		for number := range c.open {
			c.end(number, map[string]any{"code": -32023, "message": "NotFound", "data": map[string]any{"kind": "event"}})
		}
	}
	f.tell()
}

// restart breaks all connections; down keeps new ones away.
func (f *fakeStreams) restart(down bool) {
	f.mu.Lock()
	f.down = down
	var conns []*websocket.Conn
	for c := range f.conns {
		conns = append(conns, c.conn)
	}
	f.mu.Unlock()
	for _, conn := range conns {
		conn.Close(websocket.StatusServiceRestart, "restarting")
	}
}

func (f *fakeStreams) up() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = false
}

// set changes what the core does.
func (f *fakeStreams) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// opens are the bodies of all "open" frames.
func (f *fakeStreams) opens() []map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.opened)
}

// tell wakes who waits for counts. The lock is held.
func (f *fakeStreams) tell() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// await waits until the counts are so.
func (f *fakeStreams) await(t *testing.T, what string, so func(conns, streams, closed int) bool) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		f.mu.Lock()
		if f.changed == nil {
			f.changed = make(chan struct{})
		}
		changed := f.changed
		f.mu.Unlock()
		if so(f.counts()) {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatal("it never came to be that " + what)
		}
	}
}

// counts are how many connections and open streams there are, and how many
// "close" frames came.
func (f *fakeStreams) counts() (conns, streams, closed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		streams += len(c.open)
	}
	return len(f.conns), streams, f.closed
}

// A pipeListener is a network of pipes, for tests with fake time.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipeCore is a core reached over pipes, and the client that reaches it. It must
// be stopped.
func pipeCore() (core *fakeCore, client *http.Client, stop func()) {
	core = offlineCore()
	listener := newPipeListener()
	server := &http.Server{Handler: core}
	go server.Serve(listener)
	transport := &http.Transport{DialContext: listener.dial}
	return core, &http.Client{Transport: transport}, func() {
		transport.CloseIdleConnections()
		server.Close()
		listener.Close()
	}
}
