package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Wire is a transport that an MCP client and an events client share: over
// stdio, say, where a server has one connection. Make one with [Wrap], connect
// the MCP client with it, then make the events client with [Over].
type Wire struct {
	inner mcp.Transport

	mu   sync.Mutex
	conn *wireConnection // nil before Connect
}

// Wrap makes a Wire of a transport: [mcp.CommandTransport], [mcp.IOTransport], or
// one in memory. For Streamable HTTP there is [Dial]; wrapping its transport is an
// error of Connect, since that would keep the MCP client from its own streams.
func Wrap(transport mcp.Transport) *Wire { return &Wire{inner: transport} }

// Connect is called by [mcp.Client.Connect], once.
func (w *Wire) Connect(ctx context.Context) (mcp.Connection, error) {
	switch w.inner.(type) {
	case *mcp.StreamableClientTransport, *mcp.SSEClientTransport:
		return nil, errors.New("events: a transport over HTTP cannot be wrapped; use Dial beside it")
	}
	inner, err := w.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		inner.Close()
		return nil, errors.New("events: a Wire connects once")
	}
	w.conn = &wireConnection{Connection: inner, calls: map[string]chan message{}, streams: map[string]*wireStream{},
		probes: map[jsonrpc.ID]bool{}, dead: make(chan struct{})}
	return w.conn, nil
}

// connection is nil before the MCP client is connected.
func (w *Wire) connection() *wireConnection {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conn
}

// ourIDs begin the ids of our requests. The MCP client's are numbers.
const ourIDs = "rouse-events-"

// A wireConnection is what the MCP client reads and writes. It takes out what
// belongs to our requests, and watches the MCP client's own to learn what the
// server speaks and offers.
type wireConnection struct {
	mcp.Connection

	mu      sync.Mutex
	ids     int64
	calls   map[string]chan message
	streams map[string]*wireStream
	probes  map[jsonrpc.ID]bool // the MCP client's server/discover and initialize
	offers  offer
	name    string                     // the server's own
	meta    map[string]json.RawMessage // what requests carry in this revision; nil in old ones
	dead    chan struct{}
	ended   bool
}

// Write passes on what the MCP client writes.
func (c *wireConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.observe(r)
	}
	return c.Connection.Write(ctx, m)
}

// observe learns the revision of a request.
func (c *wireConnection) observe(r *jsonrpc.Request) {
	var params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(r.Params, &params) // without params there is no _meta
	c.mu.Lock()
	defer c.mu.Unlock()
	c.meta = nil
	if revision, ok := params.Meta[metaRevision]; ok {
		c.meta = map[string]json.RawMessage{metaRevision: revision}
		for _, key := range []string{metaClient, metaCapabilities} {
			if value, ok := params.Meta[key]; ok {
				c.meta[key] = value
			}
		}
	}
	if r.Method == methodDiscover || r.Method == methodInitialize {
		c.probes[r.ID] = true
	}
}

// Read passes on what is not ours.
func (c *wireConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.Connection.Read(ctx)
		if err != nil {
			c.die()
			return nil, err
		}
		if !c.take(m) {
			return m, nil
		}
	}
}

// Close ends what runs, too.
func (c *wireConnection) Close() error {
	c.die()
	return c.Connection.Close()
}

func (c *wireConnection) die() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.ended = true
		close(c.dead)
	}
}

// take takes a message that is ours. It never waits: the MCP client's messages
// are behind it.
func (c *wireConnection) take(m jsonrpc.Message) bool {
	switch m := m.(type) {
	case *jsonrpc.Response:
		return c.takeResponse(m)
	case *jsonrpc.Request:
		return !m.IsCall() && c.takeNotification(m)
	}
	return false
}

func (c *wireConnection) takeResponse(r *jsonrpc.Response) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.probes[r.ID] {
		delete(c.probes, r.ID)
		if r.Error == nil {
			c.offers, c.name = readOffer(r.Result), readServerName(r.Result)
		}
		return false
	}
	id, ok := r.ID.Raw().(string)
	if !ok || !strings.HasPrefix(id, ourIDs) {
		return false
	}
	answer := message{Result: r.Result}
	if wire, ok := errors.AsType[*jsonrpc.Error](r.Error); ok {
		answer.Error = &Error{Code: int(wire.Code), Message: wire.Message, Data: wire.Data}
	} else if r.Error != nil {
		answer.Error = &Error{Message: r.Error.Error()}
	}
	if reply, ok := c.calls[id]; ok {
		delete(c.calls, id)
		reply <- answer // it has room for one
	} else if s, ok := c.streams[id]; ok {
		s.put(answer)
	}
	return true
}

// readServerName finds the server's name in the result of either handshake.
func readServerName(result json.RawMessage) string {
	type info struct {
		Name string `json:"name"`
	}
	var r struct {
		ServerInfo info            `json:"serverInfo"`
		Meta       map[string]info `json:"_meta"`
	}
	_ = json.Unmarshal(result, &r) // it may have a _meta of other kinds, too
	if r.ServerInfo.Name != "" {
		return r.ServerInfo.Name
	}
	return r.Meta["io.modelcontextprotocol/serverInfo"].Name
}

func (c *wireConnection) takeNotification(r *jsonrpc.Request) bool {
	if !strings.HasPrefix(r.Method, "notifications/events/") && r.Method != noteAcknowledged {
		return false
	}
	var params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(r.Params, &params)
	var id string
	if json.Unmarshal(params.Meta[metaSubscription], &id) != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.streams[id]
	if ok {
		s.put(message{Method: r.Method, Params: r.Params})
	}
	return ok || strings.HasPrefix(id, ourIDs)
}

func (c *wireConnection) offer() offer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offers
}

func (c *wireConnection) label() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return "wire:" + c.name
}

// close leaves the connection to the MCP client, whose it is.
func (c *wireConnection) close() error { return nil }

// begin makes a request under a new id, which register enters first.
func (c *wireConnection) begin(ctx context.Context, r request, register func(id string)) (string, error) {
	c.mu.Lock()
	c.ids++
	id := ourIDs + strconv.FormatInt(c.ids, 10)
	register(id)
	params := map[string]any{}
	for name, value := range r.params {
		params[name] = value
	}
	if c.meta != nil {
		params["_meta"] = c.meta
	}
	c.mu.Unlock()
	body, err := json.Marshal(params)
	if err != nil {
		return id, fmt.Errorf("events: %s: %w", r.method, err)
	}
	rpcID, err := jsonrpc.MakeID(id)
	if err != nil {
		return id, err
	}
	if err := c.Connection.Write(ctx, &jsonrpc.Request{ID: rpcID, Method: r.method, Params: body}); err != nil {
		return id, fmt.Errorf("events: %s: %w", r.method, err)
	}
	return id, nil
}

func (c *wireConnection) call(ctx context.Context, r request) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, r.wait())
	defer cancel()
	reply := make(chan message, 1)
	id, err := c.begin(ctx, r, func(id string) { c.calls[id] = reply })
	defer c.forget(id)
	if err != nil {
		return nil, err
	}
	select {
	case answer := <-reply:
		return answer.outcome()
	case <-c.dead:
		return nil, ErrClosed
	case <-ctx.Done():
		c.cancel(id)
		return nil, fmt.Errorf("events: %s: %w", r.method, ctx.Err())
	}
}

func (c *wireConnection) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
	delete(c.streams, id)
}

// cancel tells the server that a request is no longer of interest.
func (c *wireConnection) cancel(id string) {
	ctx, stop := context.WithTimeout(context.Background(), defaultTimeout)
	defer stop()
	params, err := json.Marshal(map[string]string{"requestId": id})
	if err == nil {
		_ = c.Connection.Write(ctx, &jsonrpc.Request{Method: noteCancelled, Params: params}) // the connection may be gone
	}
}

func (c *wireConnection) open(ctx context.Context, r request) (stream, error) {
	s := &wireStream{conn: c, ctx: ctx, ready: make(chan struct{}, 1)}
	id, err := c.begin(ctx, r, func(id string) { s.id, c.streams[id] = id, s })
	if err != nil {
		c.forget(id)
		return nil, err
	}
	return s, nil
}

// What waits in a stream that is not read fast enough.
const (
	mostWaiting      = 1024
	mostWaitingBytes = 16 << 20
)

var errOverflow = errors.New("events: a stream was not read fast enough")

// A wireStream holds what came for a stream.
type wireStream struct {
	conn *wireConnection
	id   string
	ctx  context.Context
	once sync.Once

	mu       sync.Mutex
	waiting  []message
	bytes    int
	overflow bool
	ready    chan struct{} // has one when there is something new
}

// put never waits. What overflows is lost; the stream ends, and its successor
// begins at the last cursor that was read.
func (s *wireStream) put(m message) {
	s.mu.Lock()
	if s.bytes += len(m.Params); len(s.waiting) >= mostWaiting || s.bytes > mostWaitingBytes {
		s.overflow = true
	}
	if !s.overflow {
		s.waiting = append(s.waiting, m)
	}
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

func (s *wireStream) next() (message, error) {
	for {
		if m, ok, err := s.pop(); ok || err != nil {
			return m, err
		}
		select {
		case <-s.ready:
		case <-s.ctx.Done():
			return message{}, context.Cause(s.ctx)
		case <-s.conn.dead:
			if m, ok, err := s.pop(); ok || err != nil { // what came before the end
				return m, err
			}
			return message{}, ErrClosed
		}
	}
}

func (s *wireStream) pop() (message, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		if s.overflow {
			return message{}, false, errOverflow
		}
		return message{}, false, nil
	}
	m := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.bytes -= len(m.Params)
	if m.isResponse() && m.Error == nil && m.Result == nil {
		return message{}, false, io.EOF
	}
	return m, true, nil
}

// close cancels the request.
func (s *wireStream) close() {
	s.once.Do(func() {
		s.conn.forget(s.id)
		s.conn.cancel(s.id)
	})
}
