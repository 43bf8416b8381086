package wakeshift

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// outletHeader carries the key of an outlet from [Wakeshift.Handler] to the
// method events/stream. A context would not do: that of a session is the one of
// its first request.
const outletHeader = "X-Wakeshift-Outlet"

// outlets are the HTTP requests for a stream that the MCP handler is just
// working on, by a key that nobody can guess.
type outlets struct {
	mu    sync.Mutex
	byKey map[string]*outlet
	// inSessions ends the streams of sessions. In the revisions that have
	// sessions a client ends a request by saying so, in a request of its own.
	inSessions map[sessionRequest]*context.CancelFunc
}

// A sessionRequest is a request of a session, with the id as it is in JSON.
type sessionRequest struct{ session, id string }

// sessionHeader names the session of a request.
const sessionHeader = "Mcp-Session-Id"

// An outlet is where a stream that was admitted leaves the MCP handler.
type outlet struct {
	mu     sync.Mutex
	stream *stream
	modern bool
	shut   bool
}

func newOutlets() *outlets {
	return &outlets{byKey: map[string]*outlet{}, inSessions: map[sessionRequest]*context.CancelFunc{}}
}

// make makes an outlet.
func (o *outlets) make() (string, *outlet) {
	key, out := rand.Text(), &outlet{}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.byKey[key] = out
	return key, out
}

// find returns the outlet of a key, or nil.
func (o *outlets) find(key string) *outlet {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byKey[key]
}

// take ends an outlet and returns the stream in it, or nil.
func (o *outlets) take(key string, out *outlet) (*stream, bool) {
	o.mu.Lock()
	delete(o.byKey, key)
	o.mu.Unlock()
	out.mu.Lock()
	defer out.mu.Unlock()
	out.shut = true
	return out.stream, out.modern
}

// put puts an admitted stream into the outlet; false if nobody takes it.
func (o *outlet) put(st *stream, modern bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shut || o.stream != nil {
		return false
	}
	o.stream, o.modern = st, modern
	return true
}

// enter notes the stream of a session, so that it can be cancelled, and returns
// what undoes that.
func (o *outlets) enter(session string, id json.RawMessage, stop context.CancelFunc) (leave func()) {
	request := sessionRequest{session, string(id)}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inSessions[request] = &stop
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.inSessions[request] == &stop { // the id may have been used again
			delete(o.inSessions, request)
		}
	}
}

// cancel ends a stream of a session by the params of notifications/cancelled. A
// session's id is known to its client alone.
func (o *outlets) cancel(session string, params json.RawMessage) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if session == "" || json.Unmarshal(params, &p) != nil {
		return
	}
	o.mu.Lock()
	stop := o.inSessions[sessionRequest{session, string(p.RequestID)}]
	o.mu.Unlock()
	if stop != nil {
		(*stop)()
	}
}

// endSession ends all streams of a session.
func (o *outlets) endSession(session string) {
	if session == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for request, stop := range o.inSessions {
		if request.session == session {
			(*stop)()
		}
	}
}

// serveStream serves events/stream. The MCP handler answers as long as the
// request is not admitted; then nothing of it is left, and what is written
// afterwards takes little more than a goroutine.
func (w *Wakeshift) serveStream(rw http.ResponseWriter, r *http.Request, h http.Handler, body []byte, id json.RawMessage) {
	answer, st, modern := w.askForStream(r, h, body)
	if st == nil {
		answer.release(rw)
		return
	}
	answer.copyHeader(rw)
	session := r.Header.Get(sessionHeader)
	conn, taken := takeOver(rw)
	if !taken {
		w.writeStream(r.Context(), rw, session, st, id, modern)
		return
	}
	w.streams.detach(func() {
		defer conn.Close()
		ctx, gone := context.WithCancel(context.Background())
		defer gone()
		go conn.untilGone(gone)
		w.writeStream(ctx, conn, session, st, id, modern)
	})
}

// askForStream has the MCP handler answer a request. It returns the stream that
// was admitted, or nil and what was answered.
func (w *Wakeshift) askForStream(r *http.Request, h http.Handler, body []byte) (answer *heldAnswer, st *stream, modern bool) {
	key, out := w.outlets.make()
	ctx, done := context.WithCancel(r.Context())
	defer done() // or what the MCP SDK has made of it would live as long as the stream
	inner := withBody(r.WithContext(ctx), body)
	inner.Header = r.Header.Clone()
	inner.Header.Set(outletHeader, key) // a client's own does not get through
	answer = &heldAnswer{header: http.Header{}}
	finished := false
	defer func() {
		st, modern = w.outlets.take(key, out)
		if !finished && st != nil { // the handler panicked
			st.close()
		}
	}()
	h.ServeHTTP(answer, inner)
	finished = true
	return answer, nil, false // the outlet says what
}

// writeStream writes a stream to its client until it ends, or the context does.
func (w *Wakeshift) writeStream(ctx context.Context, rw http.ResponseWriter, session string, st *stream, id json.RawMessage, modern bool) {
	defer st.close()
	if session != "" {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		defer w.outlets.enter(session, id, stop)()
	}
	beginEvents(rw)
	st.write(ctx, rw, id, modern)
}

// withBody is a shallow copy of a request with another body.
func withBody(r *http.Request, body []byte) *http.Request {
	r = r.WithContext(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	return r
}

// A heldAnswer keeps an answer that may have to give way to a stream.
type heldAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *heldAnswer) Header() http.Header { return a.header }

func (a *heldAnswer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *heldAnswer) Write(data []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(data)
}

// Flush does nothing: the answer goes out as a whole.
func (a *heldAnswer) Flush() {}

func (a *heldAnswer) copyHeader(rw http.ResponseWriter) {
	header := rw.Header()
	for name, values := range a.header {
		header[name] = values
	}
}

func (a *heldAnswer) release(rw http.ResponseWriter) {
	a.copyHeader(rw)
	if a.status != 0 {
		rw.WriteHeader(a.status)
	}
	_, _ = a.body.WriteTo(rw) // the client is gone
}
