package server

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/quota"
	"github.com/rouse-dev/rouse/internal/refusal"
)

// A scope is what every request of the listener is run in.
type scope struct {
	log      *slog.Logger
	metrics  *metrics
	proxies  []netip.Prefix
	streams  *streams
	failures *quota.Quota[netip.Addr] // of authenticating, by network
	stopping <-chan struct{}

	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when running falls to 0 while somebody waits; nil: nobody does
}

// answer runs a handler whose answer has an end.
func (s *scope) answer(h http.Handler) http.Handler {
	return s.run(func(w *response, r *http.Request, _ netip.Addr) {
		limit(w, time.Now().Add(requestTime))
		h.ServeHTTP(w, r)
	})
}

// authenticated is answer for a handler that asks who calls. An address from which too many fail to say is not let in for a
// while: refusing it costs less than finding out again.
func (s *scope) authenticated(h http.Handler) http.Handler {
	return s.run(func(w *response, r *http.Request, client netip.Addr) {
		begun := time.Now()
		limit(w, begun.Add(requestTime))
		if wait, ok := s.failures.Has(network(client), begun); !ok {
			no := refusal.New(refusal.RateLimited, "too many requests from your address failed to authenticate: wait a moment")
			no.RetryAfter = wait
			refuse(w, no)
			return
		}
		h.ServeHTTP(w, r)
		if w.status == http.StatusUnauthorized {
			s.failures.Take(network(client), 1, time.Now())
		}
	})
}

// stream runs a handler that may go on for as long as client and core live.
func (s *scope) stream(h http.Handler) http.Handler {
	return s.run(func(w *response, r *http.Request, client netip.Addr) {
		if !s.streams.open(client) {
			no := refusal.New(refusal.RateLimited, "your address has %d streams open, the most allowed: close some", s.streams.most)
			no.RetryAfter = 30 * time.Second
			refuse(w, no)
			return
		}
		defer s.streams.close(client)
		s.metrics.streams.Inc()
		defer s.metrics.streams.Dec()
		limit(w, time.Time{})
		h.ServeHTTP(w, r)
	})
}

// limit sets or lifts the deadlines of a request's connection. They outlive the request, so each request sets them.
func limit(w http.ResponseWriter, deadline time.Time) {
	connection := http.NewResponseController(w)
	// A connection without deadlines is a test's; a dead one is found out by whoever writes to it.
	_ = connection.SetReadDeadline(deadline)
	_ = connection.SetWriteDeadline(deadline)
}

// run gives a request its id, logs and counts it, and catches its panic.
func (s *scope) run(inner func(*response, *http.Request, netip.Addr)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			w.Header().Set("Connection", "close")
			refuse(w, refusal.New(refusal.Unavailable, "the core is stopping: try again in a moment"))
			return
		}
		defer s.leave()
		id, begun, client := strings.ToLower(rand.Text()[:16]), time.Now(), clientAddress(r, s.proxies)
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, id))
		out := &response{ResponseWriter: w}
		out.Header().Set("X-Request-Id", id)
		defer func() {
			cut := s.caught(out, r, recover())
			took := time.Since(begun)
			s.metrics.count(route(r), out.status, took)
			if s.log.Enabled(r.Context(), slog.LevelDebug) { // or each of these values would be allocated for nothing
				s.log.DebugContext(r.Context(), "request", "method", r.Method, "route", route(r), "status", out.status, "bytes", out.bytes,
					"took", took.Round(time.Microsecond), "client", client)
			}
			if cut {
				panic(http.ErrAbortHandler)
			}
		}()
		inner(out, r, client)
	})
}

// caught deals with what a request panicked with; nil is nothing. It reports whether the connection must be cut: because the
// handler wants it, or because what was sent must not pass for a whole answer.
func (s *scope) caught(out *response, r *http.Request, problem any) (cut bool) {
	switch problem {
	case nil:
		return false
	case http.ErrAbortHandler:
		return true
	}
	s.log.ErrorContext(r.Context(), "a request made the core panic", "route", route(r), "panic", problem, "stack", string(debug.Stack()))
	if out.status != 0 {
		return true
	}
	refuse(out, refusal.New(refusal.Internal, "the core failed; its log says why"))
	return false
}

// route is the pattern that a request matched: unlike its path it holds no capability.
func route(r *http.Request) string {
	if r.Pattern == "" || r.Pattern == "/" {
		return "none"
	}
	return r.Pattern
}

// enter reports whether a request may begin.
func (s *scope) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.stopping:
		return false
	default:
	}
	s.running++
	return true
}

func (s *scope) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running--; s.running == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// wait returns when no request runs any more. When ctx ends before that, it calls end, which must make them end.
func (s *scope) wait(ctx context.Context, end func()) {
	s.mu.Lock()
	if s.running == 0 {
		s.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	s.idle = idle
	s.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
		end()
		<-idle
	}
}

// A response remembers what was answered.
type response struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (w *response) WriteHeader(status int) {
	if w.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Unwrap is how [http.ResponseController] finds flushing, hijacking and deadlines.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

type requestKey struct{}

// A requestHandler adds the request's id to what is logged with its context.
type requestHandler struct{ slog.Handler }

func (h requestHandler) Handle(ctx context.Context, record slog.Record) error {
	if id, ok := ctx.Value(requestKey{}).(string); ok {
		record.AddAttrs(slog.String("request", id))
	}
	return h.Handler.Handle(ctx, record)
}

func (h requestHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestHandler{h.Handler.WithAttrs(attrs)}
}

func (h requestHandler) WithGroup(name string) slog.Handler {
	return requestHandler{h.Handler.WithGroup(name)}
}
