package events_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rouse-dev/rouse/sdk/go/events"
)

type object = map[string]any

// A fakeServer is an MCP server with one event, which is a log of numbers: event
// n has the id "e<n>" and the cursor "c<n>".
type fakeServer struct {
	t  *testing.T
	mu sync.Mutex

	revision string // "2026-07-28" or an older one
	caps     object
	delivery []string
	pages    [][]object // of events/list; nil: one with "tick"
	noReplay bool       // cursors are null
	nextPoll any
	ttl      time.Duration
	receiver http.Handler

	log       int // the number of the last event
	kept      int // older ones cannot be replayed
	changed   chan struct{}
	refusals  map[string][]error // by method; each is used once
	hooks     map[string]*fakeHook
	status    object // of deliveries
	requests  []fakeRequest
	streams   int
	sessions  int
	messages  int         // deliveries, the ids of control envelopes
	breakNow  chan string // what open streams are to do
	callbacks []int       // statuses of deliveries
}

type fakeRequest struct {
	Method string
	Name   string // the header
	Params object
}

type fakeHook struct{ id, url, secret string }

// A refusal is an error of the wire; a httpRefusal one without JSON-RPC.
type refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    object `json:"data,omitempty"`
}

func (r refusal) Error() string { return r.Message }

type httpRefusal int

func (r httpRefusal) Error() string { return strconv.Itoa(int(r)) }

func newFake(t *testing.T, delivery ...string) *fakeServer {
	return &fakeServer{t: t, revision: "2026-07-28", caps: object{"extensions": object{events.Extension: object{"listChanged": true}}},
		delivery: delivery, nextPoll: 2000, ttl: time.Hour, changed: make(chan struct{}), refusals: map[string][]error{},
		hooks: map[string]*fakeHook{}, breakNow: make(chan string)}
}

// emit appends events, and delivers them to hooks.
func (f *fakeServer) emit(n int) {
	for range n {
		f.mu.Lock()
		f.log++
		number := f.log
		hooks := []*fakeHook{}
		for _, h := range f.hooks {
			hooks = append(hooks, h)
		}
		close(f.changed)
		f.changed = make(chan struct{})
		f.mu.Unlock()
		for _, h := range hooks {
			f.deliver(h, f.event(number))
		}
	}
}

func (f *fakeServer) event(n int) object {
	e := object{"eventId": fmt.Sprintf("e%d", n), "name": "tick", "timestamp": "2026-02-19T15:30:00Z", "data": object{"n": n}}
	if !f.noReplay {
		e["cursor"] = cursorAt(n)
	}
	return e
}

func cursorAt(n int) string { return fmt.Sprintf("c%d", n) }

// place is where a cursor is, and whether something before it is lost.
func (f *fakeServer) place(cursor any) (n int, truncated bool) {
	text, ok := cursor.(string)
	if !ok {
		return f.log, false
	}
	n, err := strconv.Atoi(strings.TrimPrefix(text, "c"))
	if err != nil || n < f.kept {
		return max(f.kept, 0), true
	}
	return n, false
}

func (f *fakeServer) cursor(n int) any {
	if f.noReplay {
		return nil
	}
	return cursorAt(n)
}

// set changes the server while it runs.
func (f *fakeServer) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// refuse makes the next requests of a method fail.
func (f *fakeServer) refuse(method string, errs ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusals[method] = append(f.refusals[method], errs...)
}

// seen are the requests of a method.
func (f *fakeServer) seen(method string) (list []fakeRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if r.Method == method {
			list = append(list, r)
		}
	}
	return list
}

// answer is the result of a request that is answered at once.
func (f *fakeServer) answer(ctx context.Context, method, header string, params object) (any, error) {
	f.mu.Lock()
	f.requests = append(f.requests, fakeRequest{method, header, params})
	var err error
	if list := f.refusals[method]; len(list) > 0 {
		err, f.refusals[method] = list[0], list[1:]
	}
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	switch method {
	case "server/discover":
		if f.revision != "2026-07-28" {
			return nil, refusal{Code: -32601, Message: "method not found"}
		}
		return object{"resultType": "complete", "supportedVersions": []string{f.revision}, "capabilities": f.caps,
			"ttlMs": 0, "cacheScope": "public"}, nil
	case "initialize":
		return object{"protocolVersion": f.revision, "capabilities": f.caps, "serverInfo": object{"name": "fake", "version": "1"}}, nil
	case "events/list":
		return f.listed(params), nil
	case "events/poll":
		return f.polled(params), nil
	case "events/subscribe":
		return f.subscribed(ctx, params)
	case "events/unsubscribe":
		return f.unsubscribed(params)
	}
	return nil, refusal{Code: -32601, Message: "method not found"}
}

func (f *fakeServer) listed(params object) any {
	pages := f.pages
	if pages == nil {
		pages = [][]object{{{"name": "tick", "description": "A number", "delivery": f.delivery, "inputSchema": object{"type": "object"}}}}
	}
	page := 0
	if cursor, ok := params["cursor"].(string); ok {
		page, _ = strconv.Atoi(cursor)
	}
	out := object{"resultType": "complete", "events": pages[page]}
	if page+1 < len(pages) {
		out["nextCursor"] = strconv.Itoa(page + 1)
	}
	return out
}

func (f *fakeServer) polled(params object) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, truncated := f.place(params["cursor"])
	to := f.log
	if most, ok := params["maxEvents"].(float64); ok {
		to = min(to, from+int(most))
	}
	list := []object{}
	for n := from + 1; n <= to; n++ {
		list = append(list, f.event(n))
	}
	return object{"resultType": "complete", "events": list, "cursor": f.cursor(to), "truncated": truncated, "hasMore": to < f.log, "nextPollMs": f.nextPoll}
}

func (f *fakeServer) subscribed(ctx context.Context, params object) (any, error) {
	delivery := params["delivery"].(object)
	f.mu.Lock()
	h := f.hooks[delivery["url"].(string)]
	isNew := h == nil
	if isNew {
		h = &fakeHook{id: "sub_" + strconv.Itoa(len(delivery["url"].(string))), url: delivery["url"].(string)}
	}
	h.secret = delivery["secret"].(string)
	from, truncated := f.place(params["cursor"])
	to := f.log
	f.mu.Unlock()
	if isNew {
		code, body := f.deliver(h, object{"type": "verification", "challenge": "nonce-1"})
		if code != http.StatusOK || !strings.Contains(body, `"challenge":"nonce-1"`) {
			return nil, refusal{Code: -32027, Message: "CallbackEndpointError", Data: object{"reason": "challenge_failed"}}
		}
	}
	f.mu.Lock()
	f.hooks[h.url] = h
	out := object{"resultType": "complete", "id": h.id, "refreshBefore": time.Now().Add(f.ttl).UTC().Format(time.RFC3339Nano),
		"cursor": f.cursor(from), "truncated": truncated && isNew}
	if !isNew {
		out["cursor"] = f.cursor(f.log)
		if f.status != nil {
			out["deliveryStatus"] = f.status
		}
	}
	f.mu.Unlock()
	if isNew {
		go func() {
			for n := from + 1; n <= to; n++ {
				f.deliver(h, f.event(n))
			}
		}()
	}
	return out, nil
}

func (f *fakeServer) unsubscribed(params object) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	url := params["delivery"].(object)["url"].(string)
	if f.hooks[url] == nil {
		return nil, refusal{Code: -32023, Message: "NotFound", Data: object{"kind": "subscription"}}
	}
	delete(f.hooks, url)
	return object{"resultType": "complete"}, nil
}

// hook is the one webhook there is.
func (f *fakeServer) hook() *fakeHook {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.hooks {
		return h
	}
	f.t.Fatal("there is no webhook")
	return nil
}

// deliver posts a body to a hook.
func (f *fakeServer) deliver(h *fakeHook, body object) (status int, answer string) {
	raw, err := json.Marshal(body)
	if err != nil {
		f.t.Error(err)
	}
	f.mu.Lock()
	f.messages++
	id, receiver := "msg_"+strconv.Itoa(f.messages), f.receiver
	f.mu.Unlock()
	if event, ok := body["eventId"].(string); ok {
		id = "msg_" + event
	}
	w := httptest.NewRecorder()
	receiver.ServeHTTP(w, h.request(id, time.Now(), raw))
	f.mu.Lock()
	f.callbacks = append(f.callbacks, w.Code)
	f.mu.Unlock()
	return w.Code, w.Body.String()
}

// request is a delivery as the protocol has it.
func (h *fakeHook) request(id string, at time.Time, body []byte) *http.Request {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(h.secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	r := httptest.NewRequest(http.MethodPost, h.url, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", timestamp)
	r.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	r.Header.Set("X-MCP-Subscription-Id", h.id)
	return r
}

// stream is events/stream: send writes a message, and fails when nobody reads.
func (f *fakeServer) stream(ctx context.Context, id any, params object, send func(object) error) error {
	note := func(kind string, params object) error {
		params["_meta"] = object{"io.modelcontextprotocol/subscriptionId": id}
		return send(object{"jsonrpc": "2.0", "method": "notifications/events/" + kind, "params": params})
	}
	f.mu.Lock()
	f.streams++
	at, truncated := f.place(params["cursor"])
	f.mu.Unlock()
	if err := note("active", object{"cursor": f.cursor(at), "truncated": truncated}); err != nil {
		return err
	}
	heartbeat := time.NewTicker(30 * time.Second)
	defer heartbeat.Stop()
	for silent := false; ; {
		f.mu.Lock()
		last, changed := f.log, f.changed
		f.mu.Unlock()
		for ; at < last && !silent; at++ {
			if err := note("event", f.event(at+1)); err != nil {
				return err
			}
		}
		var err error
		select {
		case <-changed:
		case <-heartbeat.C:
			if !silent {
				err = note("heartbeat", object{"cursor": f.cursor(at)})
			}
		case what := <-f.breakNow:
			switch what {
			case "close":
				return send(object{"jsonrpc": "2.0", "id": id, "result": object{"resultType": "complete"}})
			case "break":
				return io.ErrUnexpectedEOF
			case "silence":
				silent = true
			case "gap":
				err = note("active", object{"cursor": f.cursor(at), "truncated": true})
			case "junk":
				_ = note("event", object{"eventId": 5})
				_ = note("unheard_of", object{"cursor": "c999"})
				err = note("error", object{"error": object{"code": -32603, "message": "UpstreamError"}})
			case "forbid", "forbid-sketch":
				code := map[string]int{"forbid": -32024, "forbid-sketch": -32012}[what]
				_ = note("terminated", object{"error": object{"code": code, "message": "Forbidden", "data": object{"reason": "revoked"}}})
				return send(object{"jsonrpc": "2.0", "id": id, "result": object{"resultType": "complete"}})
			case "remove":
				return note("terminated", object{"error": object{"code": -32023, "message": "NotFound", "data": object{"kind": "event"}}})
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// ServeHTTP is the server over Streamable HTTP.
func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		ID     any    `json:"id"`
		Method string `json:"method"`
		Params object `json:"params"`
	}
	if r.Method == http.MethodDelete {
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		f.t.Errorf("a request cannot be read: %v", err)
	}
	f.checkHeaders(r, q.Method, q.Params)
	switch session := r.Header.Get("Mcp-Session-Id"); {
	case q.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case q.Method == "initialize":
		f.mu.Lock()
		f.sessions++
		w.Header().Set("Mcp-Session-Id", strconv.Itoa(f.sessions))
		f.mu.Unlock()
	case q.Method != "server/discover" && f.lost(session):
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	if q.Method == "events/stream" {
		f.mu.Lock()
		f.requests = append(f.requests, fakeRequest{q.Method, r.Header.Get("Mcp-Name"), q.Params})
		var refused error
		if list := f.refusals[q.Method]; len(list) > 0 {
			refused, f.refusals[q.Method] = list[0], list[1:]
		}
		f.mu.Unlock()
		if refused != nil {
			f.reply(w, q.ID, nil, refused)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_ = f.stream(r.Context(), q.ID, q.Params, func(m object) error {
			raw, _ := json.Marshal(m)
			if _, err := fmt.Fprintf(w, ": comment\r\nevent: message\r\ndata: %s\r\n\r\n", raw); err != nil {
				return err
			}
			return http.NewResponseController(w).Flush()
		})
		return
	}
	result, err := f.answer(r.Context(), q.Method, r.Header.Get("Mcp-Name"), q.Params)
	f.reply(w, q.ID, result, err)
}

// lost reports whether there is no such session, where there are any.
func (f *fakeServer) lost(session string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.revision != "2026-07-28" && session != strconv.Itoa(f.sessions)
}

// reply answers as JSON, or for every second id as a stream.
func (f *fakeServer) reply(w http.ResponseWriter, id, result any, err error) {
	if status, ok := err.(httpRefusal); ok {
		w.Header().Set("Retry-After", "7")
		http.Error(w, "no", int(status))
		return
	}
	answer := object{"jsonrpc": "2.0", "id": id}
	if err != nil {
		answer["error"] = err
	} else {
		answer["result"] = result
	}
	raw, _ := json.Marshal(answer)
	if n, ok := id.(float64); ok && int(n)%2 == 0 {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\ndata: %s\n\n", raw)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if refused, ok := err.(refusal); ok && refused.Code == -32601 {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = w.Write(raw)
}

func (f *fakeServer) checkHeaders(r *http.Request, method string, params object) {
	version := r.Header.Get("MCP-Protocol-Version")
	if r.Header.Get("X-User") != "ada" || r.Header.Get("Content-Type") != "application/json" ||
		r.Header.Get("Accept") != "application/json, text/event-stream" || version == "" {
		f.t.Errorf("%s: headers are %v", method, r.Header)
	}
	if version != "2026-07-28" {
		return
	}
	meta, _ := params["_meta"].(object)
	if r.Header.Get("Mcp-Method") != method || meta["io.modelcontextprotocol/protocolVersion"] != version ||
		meta["io.modelcontextprotocol/clientCapabilities"] == nil || meta["io.modelcontextprotocol/clientInfo"] == nil {
		f.t.Errorf("%s: headers are %v, _meta %v", method, r.Header, meta)
	}
	if name, ok := params["name"].(string); ok && r.Header.Get("Mcp-Name") != name {
		f.t.Errorf("%s: Mcp-Name is %q", method, r.Header.Get("Mcp-Name"))
	}
}

// A memoryTransport calls a handler without a network, so that a test's time can
// be virtual.
type memoryTransport struct{ handler http.Handler }

type memoryWriter struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	begun  chan int
}

func (w *memoryWriter) Header() http.Header { return w.header }
func (w *memoryWriter) WriteHeader(status int) {
	w.once.Do(func() { w.begun <- status })
}
func (w *memoryWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}
func (w *memoryWriter) Flush() { w.WriteHeader(http.StatusOK) }

// RoundTrip returns when the handler has begun its answer.
func (m memoryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	w := &memoryWriter{header: http.Header{}, body: writer, begun: make(chan int, 1)}
	go func() {
		m.handler.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		writer.Close()
	}()
	stop := context.AfterFunc(r.Context(), func() { writer.CloseWithError(r.Context().Err()) })
	select {
	case status := <-w.begun:
		return &http.Response{StatusCode: status, Header: w.header, Body: memoryBody{reader, stop}, ContentLength: -1, Request: r}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

type memoryBody struct {
	*io.PipeReader
	stop func() bool
}

func (b memoryBody) Close() error {
	b.stop()
	return b.PipeReader.Close()
}

// dial connects a client to the fake server.
func (f *fakeServer) dial(opts *events.Options) *events.Client {
	f.t.Helper()
	c, err := events.Dial(f.t.Context(), f.at(), opts)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.Close() })
	return c
}

func (f *fakeServer) at() events.HTTP {
	return events.HTTP{URL: "https://fake.example/mcp", Client: &http.Client{Transport: memoryTransport{f}}, Header: http.Header{"X-User": {"ada"}}}
}

// serveWire is the server on a transport of messages.
func (f *fakeServer) serveWire(ctx context.Context, transport mcp.Transport) {
	conn, err := transport.Connect(ctx)
	if err != nil {
		f.t.Error(err)
		return
	}
	defer conn.Close()
	var mu sync.Mutex
	running := map[any]context.CancelFunc{}
	var all sync.WaitGroup
	defer all.Wait()
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		for _, cancel := range running {
			cancel()
		}
	}()
	for {
		m, err := conn.Read(ctx)
		if err != nil {
			return
		}
		q, ok := m.(*jsonrpc.Request)
		if !ok {
			continue
		}
		var params object
		_ = json.Unmarshal(q.Params, &params)
		if !q.IsCall() {
			if q.Method == "notifications/cancelled" {
				mu.Lock()
				if cancel := running[params["requestId"]]; cancel != nil {
					cancel()
				}
				mu.Unlock()
			}
			continue
		}
		requestCtx, cancel := context.WithCancel(ctx)
		mu.Lock()
		running[q.ID.Raw()] = cancel
		mu.Unlock()
		all.Go(func() { f.answerWire(requestCtx, conn, q, params) })
	}
}

func (f *fakeServer) answerWire(ctx context.Context, conn mcp.Connection, q *jsonrpc.Request, params object) {
	send := func(m object) error {
		m["jsonrpc"] = "2.0"
		raw, _ := json.Marshal(m)
		decoded, err := jsonrpc.DecodeMessage(raw)
		if err != nil {
			return err
		}
		return conn.Write(ctx, decoded)
	}
	if q.Method == "events/stream" {
		_ = f.stream(ctx, q.ID.Raw(), params, send)
		return
	}
	result, err := f.answer(ctx, q.Method, "", params)
	answer := object{"id": q.ID.Raw(), "result": result}
	if err != nil {
		answer = object{"id": q.ID.Raw(), "error": err}
	}
	_ = send(answer)
}

// numbers writes occurrences as their numbers, and gaps as "gap".
func numbers(list []events.Occurrence) []string {
	out := []string{}
	for _, o := range list {
		var data struct{ N int }
		_ = json.Unmarshal(o.Data, &data)
		if o.Gap {
			out = append(out, "gap")
		} else {
			out = append(out, strconv.Itoa(data.N))
		}
	}
	return out
}

// take reads n occurrences, settles the last, and is false at an error.
func take(t *testing.T, s *events.Subscription, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Hour) // of virtual time: the longest poll, and then some
	defer cancel()
	var list []events.Occurrence
	for o, err := range s.All(ctx) {
		if err != nil {
			t.Fatalf("after %q: %v", numbers(list), err)
		}
		if list = append(list, o); len(list) == n {
			if err := s.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	return numbers(list)
}

// ending is the error with which a subscription ends.
func ending(t *testing.T, s *events.Subscription) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Hour) // of virtual time
	defer cancel()
	for _, err := range s.All(ctx) {
		if err != nil {
			return err
		}
	}
	return nil
}

func subscribe(t *testing.T, c *events.Client, opts *events.SubscribeOptions) *events.Subscription {
	t.Helper()
	s, err := c.Subscribe(t.Context(), "tick", nil, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func isEqual(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
