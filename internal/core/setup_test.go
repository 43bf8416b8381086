package core_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
	"github.com/rouse-dev/rouse/internal/wake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const manifest = `{"events":[
 {"name":"crawl.finished","description":"A crawl finished","topic":"ev/crawl.finished/{job}","filter":{"level":"{level}"},"public":false,
  "arguments":{"type":"object","properties":{"job":{"type":"string"},"level":{"type":"string"}},"required":["job"]},
  "payload":{"type":"object","properties":{"pages":{"type":"integer"},"level":{"type":"string"}},"required":["pages"]}},
 {"name":"site.updated","description":"A site changed","topic":"ev/site.updated/{site}","public":true,
  "arguments":{"type":"object","properties":{"site":{"type":"string"}},"required":["site"]},
  "payload":{"type":"object","properties":{"pages":{"type":"integer"}},"required":["pages"]}},
 {"name":"your.turn","description":"Your turn","topic":"ev/your.turn/{game}","personal":true,
  "arguments":{"type":"object","properties":{"game":{"type":"string"}},"required":["game"]},
  "payload":{"type":"object"}},
 {"name":"code.sent","description":"A code to sign in with","topic":"ev/code.sent/{job}","public":true,"delete_on_delivery":true,
  "arguments":{"type":"object","properties":{"job":{"type":"string"}},"required":["job"]},
  "payload":{"type":"object"}}]}`

// A bench is a core on a real database with one app, its manifest put.
type bench struct {
	*testing.T
	core  *core.Core
	app   wake.App
	store *sqlite.Store
	path  string // of the database
	hooks *fakeHooks
}

func setup(t *testing.T, change ...func(*core.Options)) *bench {
	t.Helper()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "rouse.db")
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hooks := &fakeHooks{}
	o := core.Options{Store: s, Master: credential.NewMaster([32]byte{1}), PublicURL: "http://core.test", Webhooks: hooks}
	for _, f := range change {
		f(&o)
	}
	c, err := core.New(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{T: t, core: c, store: s, path: path, hooks: hooks}
	b.app = b.newApp("crawler")
	return b
}

func (b *bench) newApp(id string) wake.App {
	b.Helper()
	app, err := b.core.CreateApp(b.Context(), id, "")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := b.core.PutManifest(b.Context(), app, json.RawMessage(manifest)); err != nil {
		b.Fatal(err)
	}
	return app
}

func args(job string) json.RawMessage { return json.RawMessage(`{"job":"` + job + `"}`) }

func (b *bench) subscribe(call wake.Call, job string) core.Subscribed {
	b.Helper()
	done, err := b.core.SubscribeEvent(b.Context(), b.app, call, "crawl.finished", args(job), false)
	if err != nil {
		b.Fatal(err)
	}
	return done
}

func (b *bench) emit(job string, pages string) core.Emitted {
	b.Helper()
	done, err := b.core.Emit(b.Context(), b.app, core.Emit{Name: "crawl.finished", Arguments: args(job), Payload: json.RawMessage(`{"pages":` + pages + `}`), Text: job + " has " + pages})
	if err != nil {
		b.Fatal(err)
	}
	return done
}

// refused fails the test unless err is a refusal with that code.
func (b *bench) refused(err error, code refusal.Code) {
	b.Helper()
	if !refusal.Is(err, code) {
		b.Errorf("got %v, want %s", err, code)
	}
}

// inbox opens the conversation's stream by the command in its addition.
func (b *bench) inbox(done core.Subscribed) *core.Inbox {
	b.Helper()
	in, err := b.core.OpenStream(b.Context(), streamToken(b.T, done.Addition.Text))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(in.Close)
	return in
}

func receipt(messages ...core.Message) (r core.Receipt) {
	r.Add(messages...)
	return r
}

func (b *bench) read(in *core.Inbox) (texts []string) {
	b.Helper()
	messages, err := in.Read(b.Context(), 100)
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range messages {
		texts = append(texts, m.Text)
	}
	return texts
}

// fakeHooks stands for the internet: package webhook has its own tests.
type fakeHooks struct {
	mu       sync.Mutex
	verify   string // reason to fail verification with; empty passes
	trusted  string // URL that is not verified
	results  []core.HookResult
	answer   func(url string) core.HookResult // of attempts that no result is set for; nil takes all
	pauses   []time.Duration                  // before the next attempts end
	verified int
	sent     []sentHook
}

type sentHook struct {
	Target core.HookTarget
	ID     string
	Body   string
}

func (f *fakeHooks) CheckTarget(url, secret string) error {
	if url == "" || secret == "" {
		return refusal.New(refusal.BadRequest, "delivery.url: is missing")
	}
	return nil
}

// Host is that of https://host/….
func (f *fakeHooks) Host(url string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "https://"), "/")
	return host + ":443"
}

func (f *fakeHooks) Trusts(url string) bool { return url == f.trusted }

func (f *fakeHooks) Verify(context.Context, core.HookTarget) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.verified++
	return f.verify, f.verify == ""
}

func (f *fakeHooks) Deliver(_ context.Context, target core.HookTarget, id string, body []byte) core.HookResult {
	result, pause := f.next(sentHook{target, id, string(body)})
	time.Sleep(pause)
	return result
}

// next takes note of an attempt and says how it goes. An answer may take its time: it is given without the lock.
func (f *fakeHooks) next(sent sentHook) (result core.HookResult, pause time.Duration) {
	f.mu.Lock()
	f.sent = append(f.sent, sent)
	answer := f.answer
	if len(f.results) > 0 {
		result, f.results = f.results[0], f.results[1:]
		answer = func(string) core.HookResult { return result }
	}
	if len(f.pauses) > 0 {
		pause, f.pauses = f.pauses[0], f.pauses[1:]
	}
	f.mu.Unlock()
	if answer == nil {
		answer = always(core.HookResult{Delivered: true})
	}
	return answer(sent.Target.URL), pause
}

// deliveries is what was sent so far.
func (f *fakeHooks) deliveries() []sentHook {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sent)
}

// fail lets the next attempts go so.
func (f *fakeHooks) fail(results ...core.HookResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.results = results
}
