package native

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
)

const (
	// maxFrame bounds a frame that is obeyed: a call with its meta, and the params of a stream. One that is larger, up to
	// maxRead, is answered: what one client of an app sends does not end the streams of the others.
	maxFrame = 256 << 10
	maxRead  = 5 << 20
	// writeTimeout bounds a write, and the wait for a pong: whoever takes nothing for so long is gone.
	writeTimeout = 30 * time.Second
	// pingEvery finds out that the other end is gone, and keeps proxies from thinking so.
	pingEvery = 20 * time.Second
	// checkEvery is how often it is looked whether the app's key still holds.
	checkEvery = 30 * time.Second
	// openTime bounds the opening of one stream.
	openTime = 10 * time.Second
)

// Options of a connection. The zero value is usable.
type Options struct {
	Logger *slog.Logger // nil: discards
	// Stopping is closed when the core is about to stop: the connection is closed so that the app comes back. nil: never.
	Stopping <-chan struct{}
}

// A connection carries the native streams of one process of an app.
type connection struct {
	core     *core.Core
	caller   core.Caller
	log      *slog.Logger
	stopping <-chan struct{}
	conn     *websocket.Conn
	streams  *core.NativeStreams

	mu       sync.Mutex
	dialects map[int64]core.Dialect // of streams that do not speak the draft's
}

// Serve takes over the request of an app that was let in, as a WebSocket, and returns when that has ended. An error is a refusal
// that is still to be answered; anything later it deals with itself.
func Serve(w http.ResponseWriter, r *http.Request, c *core.Core, caller core.Caller, o Options) error {
	streams, err := c.NativeStreams(caller.App)
	if err != nil {
		return err
	}
	defer streams.Close()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return nil // it was answered
	}
	conn.SetReadLimit(maxRead)
	n := &connection{core: c, caller: caller, log: o.Logger, stopping: o.Stopping, conn: conn, streams: streams, dialects: map[int64]core.Dialect{}}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	n.run(r.Context())
	return nil
}

// A closing is how the core ends a connection.
type closing struct {
	code   websocket.StatusCode
	reason string
}

func (c closing) Error() string { return c.reason }

// run reads, writes and watches over the connection until one of the three finds that it ends, and closes it.
func (n *connection) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	parts := []func(context.Context) error{n.listen, n.tell, n.watch}
	ended := make(chan error, len(parts))
	var running sync.WaitGroup
	for _, part := range parts {
		running.Go(func() { ended <- part(ctx) })
	}
	how := closing{websocket.StatusInternalError, "the core failed"}
	// What the connection itself fails with is neither here nor there: nobody is left to be told.
	errors.As(<-ended, &how)
	// The close frame needs the connection, which ends with the context.
	_ = n.conn.Close(how.code, how.reason)
	cancel()
	running.Wait()
}

// watch looks after the connection, whatever is or is not on it.
func (n *connection) watch(ctx context.Context) error {
	ping, check := time.NewTicker(pingEvery), time.NewTicker(checkEvery)
	defer ping.Stop()
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.stopping:
			return closing{websocket.StatusServiceRestart, "the core restarts"}
		case <-ping.C:
			if err := n.ping(ctx); err != nil {
				return err
			}
		case <-check.C:
			if err := n.core.StillIn(ctx, n.caller); refusal.Is(err, refusal.Unauthorized) {
				return closing{websocket.StatusPolicyViolation, "the app's key is not good any more"}
			}
		}
	}
}

func (n *connection) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return n.conn.Ping(ctx)
}

// tell writes what there is to tell, one frame after the other: the next one is not read before this one is out.
func (n *connection) tell(ctx context.Context) error {
	for {
		notice, err := n.streams.Next(ctx)
		if err != nil {
			return err
		}
		text, err := frameOf(notice, n.dialectOf(notice))
		if err != nil {
			n.log.ErrorContext(ctx, "a native stream's frame could not be written", "app", n.caller.App.ID, "error", err)
			return err
		}
		if err := n.write(ctx, text); err != nil {
			return err
		}
	}
}

func (n *connection) write(ctx context.Context, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return n.conn.Write(ctx, websocket.MessageText, text)
}

// dialectOf is the dialect of a notice's stream, which is forgotten when the stream ends.
func (n *connection) dialectOf(notice core.NativeNotice) core.Dialect {
	if notice.Kind != core.NoticeTerminated {
		return core.Dialect{} // the others have no code that differs
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	d, ok := n.dialects[notice.Stream]
	if !ok {
		d, _ = core.DialectNamed(core.DialectDraft)
	}
	delete(n.dialects, notice.Stream)
	return d
}

// speak notes in which dialect a stream is to be told why it ends.
func (n *connection) speak(stream int64, d core.Dialect) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d.Name == core.DialectDraft {
		delete(n.dialects, stream)
		return
	}
	n.dialects[stream] = d
}

// listen takes what the app sends until the connection ends. A stream that is refused is answered from here, so that an app that
// asks and does not read gets no further.
func (n *connection) listen(ctx context.Context) error {
	for {
		kind, text, err := n.conn.Read(ctx)
		if err != nil {
			return err
		}
		if kind != websocket.MessageText {
			return closing{websocket.StatusUnsupportedData, "a frame is one JSON object, as text"}
		}
		f, err := readFrame(text)
		if f.Stream <= 0 {
			return closing{websocket.StatusPolicyViolation, "a frame names its stream, with a positive integer"}
		}
		switch {
		case err != nil || f.Type == "open":
			err = n.open(ctx, f, err)
		case f.Type == "close":
			n.streams.CloseStream(f.Stream)
			n.speak(f.Stream, core.Dialect{Name: core.DialectDraft})
		case f.Type == "refuse":
			n.streams.Refuse(f.Stream)
		}
		if err != nil {
			return err
		}
	}
}

// open opens a stream, or answers why not; bad is what is wrong with its frame. An error ends the connection.
func (n *connection) open(ctx context.Context, f frame, bad error) error {
	if n.streams.Has(f.Stream) {
		return closing{websocket.StatusPolicyViolation, "a frame opens a stream that is open"}
	}
	q := f.request()
	d := q.dialect()
	if bad == nil {
		if bad = n.wait(ctx); bad == nil {
			n.speak(f.Stream, d)
			bad = n.begin(ctx, f.Stream, q)
		}
	}
	if bad == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	n.speak(f.Stream, core.Dialect{Name: core.DialectDraft})
	wire := d.ErrorOf(bad)
	if wire == nil {
		n.log.ErrorContext(ctx, "a native stream could not be opened", "app", n.caller.App.ID, "error", bad)
		wire = core.Fault()
	}
	text, err := refusedFrame(f.Stream, wire)
	if err != nil {
		return err
	}
	return n.write(ctx, text)
}

func (n *connection) begin(ctx context.Context, stream int64, q Request) error {
	p, err := read(q.Params)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	return n.streams.Open(ctx, stream, q.of(p), core.Since{Cursor: p.cursor, MaxAge: p.maxAge})
}

// wait has the app wait while it makes too many requests. Refusing would end streams that come back after a restart of the core.
func (n *connection) wait(ctx context.Context) error {
	for {
		no := refusal.Of(n.core.AllowApp(n.caller.App))
		if no == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(no.RetryAfter, time.Millisecond)):
		}
	}
}
