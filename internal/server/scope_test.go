package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func newScope(log io.Writer) *scope {
	return &scope{log: slog.New(requestHandler{slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})}),
		metrics: newMetrics(), streams: &streams{}, stopping: make(chan struct{})}
}

func TestAPanicBecomesAnAnswer(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	handler := newScope(&log).answer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oh") }))
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/w/capability", nil))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), `"code":"internal"`) || strings.Contains(w.Body.String(), "oh") {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	id := w.Header().Get("X-Request-Id")
	if text := log.String(); !strings.Contains(text, "panic=oh") || !strings.Contains(text, "request="+id) || strings.Contains(text, "capability") {
		t.Errorf("logged %s", text)
	}
}

func TestAPanicWithinAnAnswerCutsIt(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"a fault": "oh", "meant": http.ErrAbortHandler} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			handler := newScope(&log).stream(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "half")
				panic(value)
			}))
			defer func() {
				if got := recover(); got != http.ErrAbortHandler {
					t.Errorf("recovered %v; want the connection cut", got)
				}
				if meant := value == http.ErrAbortHandler; strings.Contains(log.String(), "level=ERROR") == meant {
					t.Errorf("logged %s", log.String())
				}
			}()
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		})
	}
}

func TestStoppingTakesNoNewRequests(t *testing.T) {
	t.Parallel()
	s := newScope(io.Discard)
	stopping := make(chan struct{})
	close(stopping)
	s.stopping = stopping
	w := httptest.NewRecorder()
	s.answer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request was taken") })).
		ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Connection") != "close" {
		t.Errorf("answered %d", w.Code)
	}
}

func TestWaitIsPatientUntilItIsNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScope(io.Discard)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		handler := s.stream(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		go handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx))
		synctest.Wait()
		patience, done := context.WithTimeout(t.Context(), ShutdownTime)
		defer done()
		begun := time.Now()
		s.wait(patience, cancel)
		if waited := time.Since(begun); waited != ShutdownTime {
			t.Errorf("waited %s; want %s", waited, ShutdownTime)
		}
		s.wait(t.Context(), func() { t.Error("nothing runs any more") })
	})
}

// A connection remembers the deadlines it was given.
type connection struct {
	*httptest.ResponseRecorder
	read, write []time.Time
}

func (c *connection) SetReadDeadline(at time.Time) error {
	c.read = append(c.read, at)
	return nil
}

func (c *connection) SetWriteDeadline(at time.Time) error {
	c.write = append(c.write, at)
	return nil
}

// A deadline stays with the connection: a stream that follows an answer on it would be cut after a minute.
func TestAStreamLiftsTheDeadlinesOfTheAnswerBeforeIt(t *testing.T) {
	t.Parallel()
	s := newScope(io.Discard)
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	c := &connection{ResponseRecorder: httptest.NewRecorder()}
	s.answer(nothing).ServeHTTP(c, httptest.NewRequest("GET", "/", nil))
	s.stream(nothing).ServeHTTP(c, httptest.NewRequest("GET", "/", nil))
	for name, set := range map[string][]time.Time{"read": c.read, "write": c.write} {
		if len(set) != 2 || set[0].IsZero() || !set[1].IsZero() {
			t.Errorf("%s deadlines %v; want one and then none", name, set)
		}
	}
}

func TestClientAddress(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	tests := map[string]struct {
		remote    string
		forwarded []string
		want      string
	}{
		"no proxy":                   {"192.0.2.1:5", nil, "192.0.2.1"},
		"a header from outside":      {"192.0.2.1:5", []string{"198.51.100.1"}, "192.0.2.1"},
		"through a proxy":            {"127.0.0.1:5", []string{"198.51.100.1"}, "198.51.100.1"},
		"through two":                {"127.0.0.1:5", []string{"198.51.100.1, 10.1.2.3"}, "198.51.100.1"},
		"in two headers":             {"127.0.0.1:5", []string{"198.51.100.1", "10.1.2.3"}, "198.51.100.1"},
		"what the client made up":    {"127.0.0.1:5", []string{"1.1.1.1, 198.51.100.1"}, "198.51.100.1"},
		"a proxy's own request":      {"10.1.2.3:5", nil, "10.1.2.3"},
		"only proxies":               {"127.0.0.1:5", []string{"10.1.2.3"}, "10.1.2.3"},
		"rubbish from the client":    {"127.0.0.1:5", []string{"rubbish, 198.51.100.1"}, "198.51.100.1"},
		"rubbish from the proxy":     {"127.0.0.1:5", []string{"198.51.100.1, rubbish"}, "127.0.0.1"},
		"IPv6":                       {"[::1]:5", []string{"2001:db8::1"}, "2001:db8::1"},
		"IPv6 with a port":           {"[::1]:5", []string{"[2001:db8::1]:77"}, "2001:db8::1"},
		"IPv4 within IPv6":           {"[::ffff:192.0.2.1]:5", nil, "192.0.2.1"},
		"a proxy's IPv4 within IPv6": {"[::ffff:127.0.0.1]:5", []string{"198.51.100.1"}, "198.51.100.1"},
		"no address at all":          {"@", nil, "invalid IP"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = test.remote
			r.Header["X-Forwarded-For"] = test.forwarded
			if got := clientAddress(r, proxies).String(); got != test.want {
				t.Errorf("got %s; want %s", got, test.want)
			}
		})
	}
}

func FuzzClientAddress(f *testing.F) {
	f.Add("127.0.0.1:1", "198.51.100.1, 10.0.0.1")
	f.Add("[::1]:1", "[2001:db8::1%eth0]:4")
	f.Fuzz(func(t *testing.T, remote, forwarded string) {
		r := &http.Request{RemoteAddr: remote, Header: http.Header{"X-Forwarded-For": {forwarded}}}
		got := clientAddress(r, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
		if got.Zone() != "" || got.Is4In6() {
			t.Errorf("%v is counted apart from the same address written otherwise", got)
		}
	})
}

func TestStreamsAreCountedByNetwork(t *testing.T) {
	t.Parallel()
	s := &streams{most: 1}
	one, neighbour, other := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("2001:db8:0:1::1")
	if !s.open(one) || s.open(neighbour) || !s.open(other) {
		t.Error("a /64 of IPv6 must count as one client")
	}
	s.close(one)
	if !s.open(neighbour) {
		t.Error("a closed stream still counts")
	}
	s.close(neighbour)
	s.close(other)
	if len(s.count) != 0 {
		t.Errorf("addresses without streams are remembered: %v", s.count)
	}
}
