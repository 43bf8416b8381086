package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/server"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
	"github.com/rouse-dev/rouse/internal/wake"
)

// net/http lingers half a second on a connection whose request it refused unread, whoever shuts down meanwhile.
var lingering = goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait")

func TestMain(m *testing.M) {
	status := pgtest.Run(m)
	if err := goleak.Find(lingering); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// A testBundle is a running server and what a test does with it.
type testBundle struct {
	*server.Server
	t   *testing.T
	log *syncBuffer
	app wake.App
}

// setup starts a server; change, if not nil, changes its options.
func setup(t *testing.T, change func(*server.Options)) *testBundle {
	t.Helper()
	b := &testBundle{t: t, log: new(syncBuffer)}
	options := server.Options{Data: dataDir(t), Listen: "127.0.0.1:0",
		Logger: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if change != nil {
		change(&options)
	}
	running, err := server.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	b.Server = running
	t.Cleanup(func() {
		if err := running.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	if b.app, err = running.Core().CreateApp(t.Context(), "crawler", ""); err != nil {
		t.Fatal(err)
	}
	manifest := `{"events":[{"name":"crawl.finished","description":"A crawl finished","topic":"ev/crawl.finished/{job}",
		"arguments":{"type":"object","properties":{"job":{"type":"string"}},"required":["job"]},"payload":{"type":"object"}}]}`
	if _, err := running.Core().PutManifest(t.Context(), b.app, json.RawMessage(manifest)); err != nil {
		t.Fatal(err)
	}
	return b
}

// dataDir is a directory whose path is short enough for a socket.
func dataDir(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("", "rouse")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	})
	return path
}

var monitorURL = regexp.MustCompile(`u='([^']+)'`)

// streamURL subscribes a conversation of Claude Code and returns the address of its stream.
func (b *testBundle) streamURL() string {
	b.t.Helper()
	done, err := b.Core().SubscribeEvent(b.t.Context(), b.app, wake.Call{Client: "claude-code"}, "crawl.finished",
		json.RawMessage(`{"job":"j1"}`), false)
	if err != nil {
		b.t.Fatal(err)
	}
	found := monitorURL.FindStringSubmatch(done.Addition.Text)
	if found == nil {
		b.t.Fatalf("no stream in %q", done.Addition.Text)
	}
	return found[1]
}

// openStream opens a stream that stays open; the caller closes its body.
func (b *testBundle) openStream(address string, header ...string) *http.Response {
	b.t.Helper()
	response := b.do(http.MethodGet, address, nil, header...)
	if response.StatusCode != http.StatusOK {
		b.t.Fatalf("the stream answered %s", response.Status)
	}
	return response
}

func (b *testBundle) emit() {
	b.t.Helper()
	if _, err := b.Core().Emit(b.t.Context(), b.app, core.Emit{Name: "crawl.finished", Arguments: json.RawMessage(`{"job":"j1"}`),
		Payload: json.RawMessage(`{}`)}); err != nil {
		b.t.Fatal(err)
	}
}

// do makes a request on a connection of its own.
func (b *testBundle) do(method, address string, body io.Reader, header ...string) *http.Response {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, address, body)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		b.t.Fatal(err)
	}
	return response
}

// refused reads an answer that says no and returns its code.
func (b *testBundle) refused(response *http.Response) (code string) {
	b.t.Helper()
	defer response.Body.Close()
	var answer struct {
		Error struct{ Code, Message string }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Error.Message == "" {
		b.t.Fatalf("%s: no error in JSON: %v", response.Status, err)
	}
	return answer.Error.Code
}

// A syncBuffer is a buffer that may be written and read at once.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
