package adminapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/adminapi"
	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// net/http lingers half a second on a connection whose request it refused unread, whoever shuts down meanwhile.
var lingering = goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, lingering) }

// A testBundle is a core with its administration socket.
type testBundle struct {
	t        *testing.T
	data     string
	store    store.Store
	core     *core.Core
	client   *adminapi.Client
	stopping chan struct{}
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	b := &testBundle{t: t, data: dataDir(t), stopping: make(chan struct{})}
	database, err := sqlite.Open(t.Context(), filepath.Join(b.data, "rouse.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Close() })
	b.store = database
	b.core, err = core.New(t.Context(), core.Options{Store: database, Master: credential.NewMaster([32]byte{1}), PublicURL: "http://core.test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.core.Close)
	listener, err := adminapi.Listen(b.data)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: adminapi.New(b.core, adminapi.Options{Status: adminapi.Status{PublicURL: "http://core.test"}, Stopping: b.stopping, Scratch: b.data})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	b.client = adminapi.NewClient(b.data)
	t.Cleanup(func() {
		b.client.Close()
		_ = server.Close()
		<-served
	})
	return b
}

// dataDir is a private directory whose path is short enough for a socket.
func dataDir(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("", "rouse")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
}

// newApp makes an app with one event.
func (b *testBundle) newApp(id string) wake.App {
	b.t.Helper()
	app, err := b.core.CreateApp(b.t.Context(), id, "")
	if err != nil {
		b.t.Fatal(err)
	}
	manifest := `{"events":[{"name":"crawl.finished","description":"A crawl finished","topic":"ev/crawl.finished/{job}",
		"arguments":{"type":"object","properties":{"job":{"type":"string"}},"required":["job"]},"payload":{"type":"object"}}]}`
	if _, err := b.core.PutManifest(b.t.Context(), app, json.RawMessage(manifest)); err != nil {
		b.t.Fatal(err)
	}
	return app
}

func (b *testBundle) subscribe(app wake.App) {
	b.t.Helper()
	if _, err := b.core.SubscribeEvent(b.t.Context(), app, wake.Call{Client: "claude-code", User: "ada"}, "crawl.finished",
		json.RawMessage(`{"job":"j1"}`), true); err != nil {
		b.t.Fatal(err)
	}
}

var someTime = cmpopts.IgnoreTypes(time.Time{})

func TestAppsAndKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	app, err := b.client.CreateApp(ctx, "crawler", "Site crawler")
	if diff := cmp.Diff(adminapi.App{ID: "crawler", Name: "Site crawler"}, app, someTime); err != nil || diff != "" {
		t.Fatalf("%v %s", err, diff)
	}
	if _, err := b.client.CreateApp(ctx, "crawler", ""); !refusal.Is(err, refusal.Exists) {
		t.Errorf("the same app again: %v", err)
	}
	key, err := b.client.CreateKey(ctx, "crawler", "laptop")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := credential.ParseAppKey(key.Secret)
	if err != nil || credential.KeyID(secret.PublicKey()) != key.ID {
		t.Errorf("the key shown is not the one kept: %v", err)
	}
	if err := b.client.RevokeKey(ctx, "crawler", key.ID); err != nil {
		t.Fatal(err)
	}
	keys, err := b.client.Keys(ctx, "crawler")
	if err != nil || len(keys) != 1 || keys[0].Name != "laptop" || keys[0].RevokedAt.IsZero() {
		t.Errorf("keys %+v, %v; want one, revoked", keys, err)
	}
	status, err := b.client.Status(ctx)
	if diff := cmp.Diff(adminapi.Status{PublicURL: "http://core.test", Apps: 1}, status); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if err := b.client.DeleteApp(ctx, "crawler"); err != nil {
		t.Fatal(err)
	}
	if apps, err := b.client.Apps(ctx); err != nil || len(apps) != 0 {
		t.Errorf("apps %v, %v; want none", apps, err)
	}
}

func TestRefusalsArriveAsRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.newApp("crawler")
	ctx := t.Context()
	tests := map[string]struct {
		err  error
		want refusal.Code
	}{
		"bad id":           {second(b.client.CreateApp(ctx, "No!", "")), refusal.BadRequest},
		"no such app":      {b.client.DeleteApp(ctx, "nobody"), refusal.UnknownApp},
		"keys of none":     {second(b.client.Keys(ctx, "nobody")), refusal.UnknownApp},
		"key for none":     {second(b.client.CreateKey(ctx, "nobody", "")), refusal.UnknownApp},
		"no such key":      {b.client.RevokeKey(ctx, "crawler", "nothing"), refusal.UnknownKey},
		"subscriptions":    {second(b.client.Subscriptions(ctx, "nobody")), refusal.UnknownApp},
		"emit for none":    {second(b.client.Emit(ctx, "nobody", adminapi.Emit{Name: "crawl.finished"})), refusal.UnknownApp},
		"no such event":    {second(b.client.Emit(ctx, "crawler", adminapi.Emit{Name: "crawl.begun"})), refusal.UnknownEvent},
		"bad arguments":    {second(b.client.Emit(ctx, "crawler", adminapi.Emit{Name: "crawl.finished"})), refusal.BadArguments},
		"a path as an app": {b.client.DeleteApp(ctx, "../apps"), refusal.UnknownApp},
		"too large": {second(b.client.Emit(ctx, "crawler", adminapi.Emit{Name: "crawl.finished",
			Payload: json.RawMessage(`{"a":"` + strings.Repeat("a", 3<<20) + `"}`)})), refusal.TooLarge},
		"not strict JSON": {second(b.client.Emit(ctx, "crawler", adminapi.Emit{Name: "crawl.finished",
			Arguments: json.RawMessage(`{"job":"a","job":"b"}`)})), refusal.BadRequest},
	}
	for name, test := range tests {
		if !refusal.Is(test.err, test.want) {
			t.Errorf("%s: %v; want %s", name, test.err, test.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestEmitAndSubscriptions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.newApp("crawler")
	b.subscribe(app)
	subs, err := b.client.Subscriptions(t.Context(), "crawler")
	want := []adminapi.Subscription{{App: "crawler", Event: "crawl.finished", Topic: "ev/crawl.finished/j1", Arguments: json.RawMessage(`{"job":"j1"}`),
		Once: true, Harness: "claude-code", Client: "claude-code", User: "ada"}}
	if diff := cmp.Diff(want, subs, someTime, cmpopts.IgnoreFields(adminapi.Subscription{}, "ID", "Conversation")); err != nil || diff != "" {
		t.Fatalf("%v %s", err, diff)
	}
	e := adminapi.Emit{Name: "crawl.finished", Arguments: json.RawMessage(`{"job":"j1"}`), Payload: json.RawMessage(`{ "n": 1e2, "s": "<&>" }`), ID: "one"}
	for i, want := range []adminapi.Emitted{{Matched: 1}, {Matched: 1, Duplicate: true}} {
		got, err := b.client.Emit(t.Context(), "crawler", e)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(adminapi.Emitted{}, "ID")); err != nil || diff != "" || got.ID == "" {
			t.Errorf("emit %d: %v %s", i, err, diff)
		}
	}
	if subs, err := b.client.Subscriptions(t.Context(), "crawler"); err != nil || len(subs) != 0 {
		t.Errorf("after its event: %v, %v; want none", subs, err)
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.newApp("crawler")
	var kinds []trace.Kind
	enough := errors.New("enough")
	err := b.client.Tail(t.Context(), func() { b.subscribe(app) }, func(e trace.Entry) error {
		kinds = append(kinds, e.Kind)
		if e.Kind == trace.Subscribed {
			_, err := b.client.Emit(t.Context(), "crawler", adminapi.Emit{Name: "crawl.finished", Arguments: json.RawMessage(`{"job":"j1"}`),
				Payload: json.RawMessage(`{}`)})
			return err
		}
		if e.Kind == trace.Matched {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]trace.Kind{trace.Subscribed, trace.Emitted, trace.Matched}, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestATailEnds(t *testing.T) {
	t.Parallel()
	t.Run("with the core", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		err := b.client.Tail(t.Context(), func() { close(b.stopping) }, func(trace.Entry) error { return nil })
		if !errors.Is(err, adminapi.ErrNotRunning) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("with its context", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		ctx, cancel := context.WithCancel(t.Context())
		if err := b.client.Tail(ctx, cancel, func(trace.Entry) error { return nil }); err != nil {
			t.Errorf("error %v", err)
		}
	})
}

func TestTheSocketIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	info, err := os.Lstat(adminapi.Socket(b.data))
	if err != nil || info.Mode()&fs.ModeSocket == 0 || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want a socket with 0600", info.Mode(), err)
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	t.Run("takes the place of a dead core's socket", func(t *testing.T) {
		t.Parallel()
		data := dataDir(t)
		dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: adminapi.Socket(data)})
		if err != nil {
			t.Fatal(err)
		}
		dead.SetUnlinkOnClose(false) // as a crash leaves it
		_ = dead.Close()
		listener, err := adminapi.Listen(data)
		if err != nil {
			t.Fatal(err)
		}
		_ = listener.Close()
		if _, err := os.Lstat(adminapi.Socket(data)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after closing: %v", err)
		}
	})
	t.Run("keeps what is no socket", func(t *testing.T) {
		t.Parallel()
		data := dataDir(t)
		if err := os.WriteFile(adminapi.Socket(data), []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := adminapi.Listen(data); err == nil || !strings.Contains(err.Error(), "not a socket") {
			t.Errorf("error %v", err)
		}
		if content, err := os.ReadFile(adminapi.Socket(data)); err != nil || string(content) != "precious" {
			t.Errorf("the file is now %q, %v", content, err)
		}
	})
	t.Run("says that a path is too long", func(t *testing.T) {
		t.Parallel()
		if _, err := adminapi.Listen(filepath.Join(dataDir(t), strings.Repeat("long", 30))); err == nil || !strings.Contains(err.Error(), "shorter --data") {
			t.Errorf("error %v", err)
		}
	})
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	_, err := adminapi.NewClient(dataDir(t)).Apps(t.Context())
	if !errors.Is(err, adminapi.ErrNotRunning) || !strings.Contains(err.Error(), "rouse serve") {
		t.Errorf("error %v; want one that says what to do", err)
	}
}
