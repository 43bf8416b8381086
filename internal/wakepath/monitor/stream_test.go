package monitor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/wake"
	"github.com/rouse-dev/rouse/internal/wakepath/monitor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var claude = wake.Call{Client: "claude-code", User: "ada"}

// A watch is one running command: a request to the handler whose lines are kept with their time.
type watch struct {
	mu     sync.Mutex
	header http.Header
	status int
	lines  []heard

	cancel context.CancelFunc
	done   chan struct{}
	cut    bool // it ended in mid-stream
}

type heard struct {
	at   time.Duration // since the test began
	line string
}

var began = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // synctest's clock

func (w *watch) Header() http.Header { return w.header }

func (w *watch) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = status
}

func (w *watch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(string(p)) {
		w.lines = append(w.lines, heard{time.Since(began), strings.TrimSuffix(line, "\n")})
	}
	return len(p), nil
}

func (w *watch) Flush() {}

// run starts the command of a tool result.
func run(t *testing.T, h http.Handler, text string, query string) *watch {
	t.Helper()
	address := regexp.MustCompile(`u='http://core\.test(/w/[^']+)'`).FindStringSubmatch(text)
	if address == nil {
		t.Fatalf("no command in %q", text)
	}
	return get(t, h, address[1]+query)
}

func get(t *testing.T, h http.Handler, path string) *watch {
	ctx, cancel := context.WithCancel(t.Context())
	w := &watch{header: http.Header{}, cancel: cancel, done: make(chan struct{})}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	go func() {
		defer close(w.done)
		defer func() {
			if v := recover(); v != nil {
				w.cut = v == http.ErrAbortHandler
			}
		}()
		h.ServeHTTP(w, r)
	}()
	t.Cleanup(w.stop)
	return w
}

func (w *watch) stop() {
	w.cancel()
	<-w.done
}

func (w *watch) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// subjects are those of the lines so far that are not blank.
func (w *watch) subjects(t *testing.T) (list []string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.lines {
		if h.line == "" {
			continue
		}
		var l struct{ Type, Subject string }
		if err := json.Unmarshal([]byte(h.line), &l); err != nil {
			t.Fatalf("%q: %v", h.line, err)
		}
		list = append(list, l.Subject)
	}
	return list
}

// inBubble runs a test of a core and its streams with synctest's clock.
func inBubble(t *testing.T, f func(t *testing.T, b *coretest.Bench, h http.Handler)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := coretest.New(t)
		f(t, b, monitor.New(b.Core, monitor.Options{}))
	})
}

func TestAnEventIsALine(t *testing.T) {
	inBubble(t, func(t *testing.T, b *coretest.Bench, h http.Handler) {
		done := b.Subscribe(claude, "j1", false)
		b.Emit("j1", `{"pages":1}`, "before")
		w := run(t, h, done.Addition.Text, "")
		synctest.Wait()
		b.Emit("j1", `{"pages":2}`, "after")
		b.Emit("j2", `{"pages":3}`, "another's")
		synctest.Wait()
		if want := []string{"before", "after"}; !cmp.Equal(want, w.subjects(t)) || w.status != 200 {
			t.Errorf("status %d, got %q", w.status, w.subjects(t))
		}
		if got := w.header.Get("X-Accel-Buffering"); got != "no" {
			t.Error("a proxy may hold it back")
		}
	})
}

func TestABlankLineKeepsAQuietStreamAlive(t *testing.T) {
	inBubble(t, func(t *testing.T, b *coretest.Bench, h http.Handler) {
		w := run(t, h, b.Subscribe(claude, "j1", false).Addition.Text, "")
		time.Sleep(65 * time.Second)
		synctest.Wait()
		want := []heard{{20 * time.Second, ""}, {40 * time.Second, ""}, {60 * time.Second, ""}}
		if diff := cmp.Diff(want, w.lines, cmp.AllowUnexported(heard{})); diff != "" {
			t.Error(diff)
		}
	})
}

func TestALineIsDeliveredOnceTheConnectionOutlivedIt(t *testing.T) {
	inBubble(t, func(t *testing.T, b *coretest.Bench, h http.Handler) {
		text := b.Subscribe(claude, "j1", false).Addition.Text
		w := run(t, h, text, "")
		synctest.Wait()
		b.Emit("j1", `{"pages":1}`, "one")
		time.Sleep(3 * time.Second)
		b.Emit("j1", `{"pages":2}`, "two")
		time.Sleep(time.Second)
		w.stop() // a second after the line: it may not have arrived
		b.Emit("j1", `{"pages":3}`, "three")
		again := run(t, h, text, "")
		synctest.Wait()
		if want := []string{"two", "three"}; !cmp.Equal(want, again.subjects(t)) {
			t.Errorf("came again: %q", again.subjects(t))
		}
	})
}

func TestOnceEndsTheCommand(t *testing.T) {
	inBubble(t, func(t *testing.T, b *coretest.Bench, h http.Handler) {
		text := b.Subscribe(claude, "j1", true).Addition.Text
		w := run(t, h, text, "")
		synctest.Wait()
		b.Emit("j1", `{"pages":1}`, "one")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !w.ended() || w.cut || !cmp.Equal(w.subjects(t), []string{"one"}) {
			t.Errorf("ended %v, cut %v, got %q", w.ended(), w.cut, w.subjects(t))
		}
		again := run(t, h, text, "")
		synctest.Wait()
		if !again.ended() || again.status != 204 {
			t.Errorf("a later run is answered %d", again.status)
		}
	})
}

func TestOneShotEndsAfterTheFirstEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, b *coretest.Bench, h http.Handler) {
		text := b.Subscribe(claude, "j1", false).Addition.Text
		w := run(t, h, text, "?once=1")
		synctest.Wait()
		b.Emit("j1", `{"pages":1}`, "one")
		b.Emit("j1", `{"pages":2}`, "two")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !w.ended() || w.cut || !cmp.Equal(w.subjects(t), []string{"one"}) {
			t.Errorf("ended %v, cut %v, got %q", w.ended(), w.cut, w.subjects(t))
		}
		next := run(t, h, text, "?once=1")
		synctest.Wait()
		if !cmp.Equal(next.subjects(t), []string{"two"}) {
			t.Errorf("the next run got %q", next.subjects(t))
		}
	})
}

func TestTheEndOfTheLastSubscriptionEndsTheCommand(t *testing.T) {
	inBubble(t, func(t *testing.T, b *coretest.Bench, h http.Handler) {
		done := b.Subscribe(claude, "j1", false)
		w := run(t, h, done.Addition.Text, "")
		synctest.Wait()
		call := claude
		call.Session = done.Session
		if _, err := b.Core.UnsubscribeEvent(t.Context(), b.App, call, "crawl.finished", json.RawMessage(`{"job":"j1"}`)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !w.ended() || w.cut {
			t.Errorf("ended %v, cut %v", w.ended(), w.cut)
		}
	})
}

func TestUnknownStreamsEndTheirCommand(t *testing.T) {
	inBubble(t, func(t *testing.T, b *coretest.Bench, h http.Handler) {
		for _, path := range []string{"/w/", "/w/x", "/w/" + strings.Repeat("a", 5000), "/w/x/y/z"} {
			w := get(t, h, path)
			synctest.Wait()
			if !w.ended() || w.status != 204 || len(w.lines) != 0 {
				t.Errorf("%.20s: %d %v", path, w.status, w.lines)
			}
		}
	})
}

func TestAStoppingCoreCutsItsStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, stopping := coretest.New(t), make(chan struct{})
		w := run(t, monitor.New(b.Core, monitor.Options{Stopping: stopping}), b.Subscribe(claude, "j1", false).Addition.Text, "")
		synctest.Wait()
		close(stopping)
		synctest.Wait()
		if !w.ended() || !w.cut {
			t.Errorf("ended %v, cut %v", w.ended(), w.cut)
		}
	})
}

// Claude Code takes ten notifications at once and then one per two seconds, and drops what is over it.
func TestThePaceIsWhatTheHarnessTakes(t *testing.T) {
	inBubble(t, func(t *testing.T, b *coretest.Bench, h http.Handler) {
		w := run(t, h, b.Subscribe(claude, "j1", false).Addition.Text, "")
		synctest.Wait()
		for i := range 25 {
			b.Emit("j1", fmt.Sprintf(`{"pages":%d}`, i), fmt.Sprint(i))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.subjects(t); len(got) != 25 {
			t.Fatalf("%d lines", len(got))
		}
		for i, at := 0, time.Duration(0); i < 25; i++ {
			if w.lines[i].line == "" {
				t.Fatalf("line %d is blank", i)
			}
			if i >= 10 {
				at += 2 * time.Second
			}
			if w.lines[i].at < at {
				t.Errorf("line %d went out after %v, too soon", i, w.lines[i].at)
			}
		}
	})
}

func TestAFloodIsFoldedIntoADigestThatGivesItAll(t *testing.T) {
	inBubble(t, func(t *testing.T, b *coretest.Bench, h http.Handler) {
		text := b.Subscribe(claude, "j1", false).Addition.Text
		for i := range 100 {
			b.Emit("j1", fmt.Sprintf(`{"pages":%d}`, i), fmt.Sprint(i))
		}
		w := run(t, h, text, "")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		got := w.subjects(t)
		if len(got) != 10 || got[8] != "8" {
			t.Fatalf("lines: %q", got)
		}
		var digest struct{ Type, Whole string }
		if err := json.Unmarshal([]byte(w.lines[9].line), &digest); err != nil || digest.Type != "digest" {
			t.Fatalf("%s, %v", w.lines[9].line, err)
		}
		all := get(t, h, strings.TrimPrefix(digest.Whole, "http://core.test"))
		synctest.Wait()
		if folded := all.subjects(t); len(folded) != 91 || folded[0] != "9" || folded[90] != "99" {
			t.Errorf("the digest gives %d: %q", len(folded), folded)
		}
		// And none of them comes again.
		w.stop()
		again := run(t, h, text, "")
		synctest.Wait()
		if got := again.subjects(t); len(got) != 0 {
			t.Errorf("came again: %q", got)
		}
	})
}

func TestWhatDidNotFitIsGivenInFull(t *testing.T) {
	inBubble(t, func(t *testing.T, b *coretest.Bench, h http.Handler) {
		text := b.Subscribe(claude, "j1", false).Addition.Text
		b.Emit("j1", `{"pages":1,"note":"`+strings.Repeat("x", 20_000)+`"}`, "long")
		w := run(t, h, text, "")
		synctest.Wait()
		var line struct{ Whole string }
		if err := json.Unmarshal([]byte(w.lines[0].line), &line); err != nil || line.Whole == "" {
			t.Fatalf("%s, %v", w.lines[0].line, err)
		}
		full := get(t, h, strings.TrimPrefix(line.Whole, "http://core.test"))
		synctest.Wait()
		if len(full.lines) != 1 || !strings.Contains(full.lines[0].line, strings.Repeat("x", 20_000)) {
			t.Errorf("%d lines, status %d", len(full.lines), full.status)
		}
		// Another conversation's capability does not give it.
		b.Emit("j2", `{"pages":1}`, "another's")
		other := b.Subscribe(claude, "j2", false).Addition.Text
		token := regexp.MustCompile(`/w/([^']+)'`).FindStringSubmatch(other)[1]
		id := line.Whole[strings.LastIndex(line.Whole, "/"):]
		stranger := get(t, h, "/w/"+token+"/messages"+id)
		synctest.Wait()
		if stranger.status != 404 {
			t.Errorf("another conversation got %d %v", stranger.status, stranger.lines)
		}
	})
}

func TestSubscriptionsThatEndAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T, b *coretest.Bench, h http.Handler) {
		w := run(t, h, b.Subscribe(claude, "j1", false).Addition.Text, "")
		synctest.Wait()
		if _, err := b.Core.PutManifest(t.Context(), b.App, json.RawMessage(`{"events":[]}`)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := w.subjects(t); len(got) != 1 || !strings.Contains(got[0], "no longer offers") || !w.ended() || w.cut {
			t.Errorf("got %q, ended %v, cut %v", got, w.ended(), w.cut)
		}
	})
}
