package connector_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
	"github.com/rouse-dev/rouse/internal/wakepath/connector"
)

// net/http lingers half a second on a connection whose request it refused unread, whoever shuts down meanwhile.
var lingering = goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, lingering) }

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// A lab is a core and the server its connectors come to.
type lab struct {
	*coretest.Bench
	client   *http.Client
	feed     *trace.Follower
	stopping chan struct{}
	options  connector.Options
}

// setup is a lab on a real network.
func setup(t *testing.T, change ...func(*core.Options)) *lab {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	transport := &http.Transport{}
	return start(t, server, transport, "http://"+server.Listener.Addr().String(), change...)
}

// inBubble runs a test on synctest's clock, over connections that hold nothing back.
func inBubble(t *testing.T, f func(t *testing.T, l *lab)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		server := &httptest.Server{Listener: network, Config: &http.Server{}}
		f(t, start(t, server, &http.Transport{DialContext: network.dial}, coretest.PublicURL))
	})
}

func start(t *testing.T, server *httptest.Server, transport *http.Transport, url string, change ...func(*core.Options)) *lab {
	t.Helper()
	change = append(change, func(o *core.Options) { o.PublicURL = url })
	b := coretest.New(t, change...)
	l := &lab{Bench: b, client: &http.Client{Transport: transport}, feed: b.Core.Feed().Follow(), stopping: make(chan struct{})}
	var running sync.WaitGroup
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Done()
		o := l.options
		o.Stopping = l.stopping
		connector.New(b.Core, o).ServeHTTP(w, r)
	})
	server.Start()
	t.Cleanup(func() {
		l.feed.Close()
		transport.CloseIdleConnections()
		server.Close()
		running.Wait() // a hijacked connection is none of the server's
	})
	return l
}

// pipes is a network in memory.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// A conversation is a thread of Codex that is subscribed to a job, and what its connector knows of it.
type conversation struct {
	*lab
	thread, job string
	beacon      credential.Beacon
}

// conversation subscribes a new thread to a job of the same name.
func (l *lab) conversation(thread string) *conversation { return l.subscribed(thread, false) }

func (l *lab) subscribed(thread string, once bool) *conversation {
	l.Helper()
	token, _ := l.Subscribe(codex(thread), thread, once).Addition.Meta["wakeshift/connector"].(string)
	beacon, err := credential.VerifyBeacon(token, credential.NewMaster([32]byte{1}).BeaconKey(), time.Now())
	if err != nil {
		l.Fatal(err)
	}
	return &conversation{l, thread, thread, beacon}
}

// codex is a tool call of Codex in that thread.
func codex(thread string) wake.Call {
	return wake.Call{Client: "codex-mcp-client", Tool: "watch_crawl", Meta: json.RawMessage(`{"x-codex-turn-metadata":{"thread_id":"` + thread + `"}}`)}
}

// emit emits on the conversation's job, once for each text.
func (c *conversation) emit(texts ...string) {
	c.Helper()
	for i, text := range texts {
		c.Emit(c.job, fmt.Sprintf(`{"pages":%d}`, i), text)
	}
}

// A reply is what a redeem was answered.
type reply struct {
	status int
	header http.Header
	body   string
}

func (c *conversation) redeem(body string) reply {
	c.Helper()
	response, err := c.client.Post(c.beacon.Redeem, "application/json", strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, string(text)}
}

// ask is the body of a redeem.
func ask(ticket, thread string) string {
	body, err := json.Marshal(map[string]string{"ticket": ticket, "thread": thread})
	if err != nil {
		panic(err) // strings always have a JSON form
	}
	return string(body)
}

// url redeems the ticket.
func (c *conversation) url() string {
	c.Helper()
	got := c.redeem(ask(c.beacon.Ticket, c.thread))
	var answer struct{ URL string }
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status != http.StatusOK || answer.URL == "" {
		c.Fatalf("%d %s, %v", got.status, got.body, err)
	}
	return answer.URL
}

// A socket is a connector's end of the WebSocket.
type socket struct {
	*lab
	conn *websocket.Conn
}

// connect opens a WebSocket, which is cut at the end of the test.
func (l *lab) connect(url string) *socket {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	conn, response, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: l.client})
	if err != nil {
		l.Fatalf("%v: %v", response, err)
	}
	s := &socket{l, conn}
	l.Cleanup(s.cut)
	return s
}

// cut ends the connection without a word.
func (s *socket) cut() { _ = s.conn.CloseNow() }

// A frame is what the core sends.
type frame struct {
	Type     string `json:"type"`
	Delivery string `json:"delivery_id"`
	Event    struct {
		Subject string          `json:"subject"`
		Data    json.RawMessage `json:"data"`
	} `json:"event"`
}

// text is the next frame as it came.
func (s *socket) text() string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	kind, text, err := s.conn.Read(ctx)
	if err != nil || kind != websocket.MessageText {
		s.Fatalf("%v %q, %v", kind, text, err)
	}
	return string(text)
}

func (s *socket) frame() (f frame) {
	s.Helper()
	text := s.text()
	if err := json.Unmarshal([]byte(text), &f); err != nil || f.Delivery == "" {
		s.Fatalf("%q, %v", text, err)
	}
	return f
}

// frames are the next n.
func (s *socket) frames(n int) (list []frame) {
	s.Helper()
	for range n {
		list = append(list, s.frame())
	}
	return list
}

// subjects are those of the next n frames.
func (s *socket) subjects(n int) (list []string) {
	s.Helper()
	for _, f := range s.frames(n) {
		list = append(list, f.Event.Subject)
	}
	return list
}

// send sends a text.
func (s *socket) send(text string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		s.Fatal(err)
	}
}

func (s *socket) ack(deliveries ...string) {
	s.Helper()
	for _, id := range deliveries {
		s.send(`{"type":"ack","delivery_id":"` + id + `"}`)
	}
}

// closed is the code the core closes with. There must be no further frame before that.
func (s *socket) closed() websocket.StatusCode {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	_, text, err := s.conn.Read(ctx)
	if err == nil {
		s.Fatalf("a frame instead of the end: %s", text)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		s.Fatal("it was not closed")
	}
	return websocket.CloseStatus(err)
}

// awaits waits until the core says that something happened to an occurrence, or to any where id is empty.
func (l *lab) awaits(kind trace.Kind, id string) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	for {
		select {
		case entry := <-l.feed.C():
			if entry.Kind == kind && (id == "" || entry.Occurrence == id) {
				return
			}
		case <-ctx.Done():
			l.Fatalf("%s was not %s", id, kind)
		}
	}
}
