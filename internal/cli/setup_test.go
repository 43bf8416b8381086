package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/cli"
	"github.com/rouse-dev/rouse/internal/server"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
	"github.com/rouse-dev/rouse/internal/wake"
)

// TestMain runs the program instead of the tests in processes that tests start.
func TestMain(m *testing.M) {
	if os.Getenv("ROUSE_TEST_PROGRAM") != "" {
		os.Exit(cli.Run(context.Background(), cli.Env{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ()}))
	}
	status := pgtest.Run(m)
	if err := goleak.Find(goleak.IgnoreTopFunction("os/signal.loop")); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// A result is what a command did.
type result struct {
	status      int
	out, errOut string
}

// A testBundle is a running core and the environment commands are run in.
type testBundle struct {
	t       *testing.T
	core    *server.Server
	environ []string
	stdin   string
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	b := &testBundle{t: t, environ: bare(t)}
	core, err := server.Start(t.Context(), server.Options{Data: dataDir(t), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := core.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	b.core = core
	b.environ = append(b.environ, "ROUSE_DATA="+core.Data())
	return b
}

// bare is an environment without settings.
func bare(t *testing.T) []string {
	t.Helper()
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ROUSE_CONFIG="}
}

// dataDir is a directory whose path is short enough for a socket.
func dataDir(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("", "rouse")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
}

// run runs a command to its end.
func (b *testBundle) run(args ...string) result {
	b.t.Helper()
	return runIn(b.t.Context(), b.environ, b.stdin, args...)
}

func runIn(ctx context.Context, environ []string, stdin string, args ...string) result {
	var out, errOut bytes.Buffer
	status := cli.Run(ctx, cli.Env{Args: args, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errOut, Environ: environ})
	return result{status, out.String(), errOut.String()}
}

// ok runs a command that has to succeed and returns its standard output.
func (b *testBundle) ok(args ...string) string {
	b.t.Helper()
	got := b.run(args...)
	if got.status != 0 {
		b.t.Fatalf("rouse %s: status %d: %s", strings.Join(args, " "), got.status, got.errOut)
	}
	return got.out
}

// json runs a command with --json and decodes its answer.
func (b *testBundle) json(into any, args ...string) {
	b.t.Helper()
	out := b.ok(append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		b.t.Fatalf("rouse %s --json: %v: %q", strings.Join(args, " "), err, out)
	}
}

// crawler makes the app "crawler" with the event crawl.finished {job}, and the personal report.ready.
func (b *testBundle) crawler() wake.App {
	b.t.Helper()
	b.ok("app", "create", "crawler", "--name", "Site crawler")
	app := wake.App{ID: "crawler", Name: "Site crawler"}
	manifest := `{"events":[{"name":"crawl.finished","description":"A crawl finished","topic":"ev/crawl.finished/{job}",
		"arguments":{"type":"object","properties":{"job":{"type":"string"}},"required":["job"]},"payload":{"type":"object"}},
		{"name":"report.ready","description":"A report is ready","topic":"ev/report.ready","personal":true,
		"arguments":{"type":"object","properties":{}},"payload":{"type":"object"}}]}`
	if _, err := b.core.Core().PutManifest(b.t.Context(), app, json.RawMessage(manifest)); err != nil {
		b.t.Fatal(err)
	}
	return app
}

// subscribe subscribes a conversation of Claude Code to crawl.finished {job: j1}.
func (b *testBundle) subscribe(app wake.App) {
	b.t.Helper()
	if _, err := b.core.Core().SubscribeEvent(b.t.Context(), app, wake.Call{Client: "claude-code", User: "ada"}, "crawl.finished",
		json.RawMessage(`{"job":"j1"}`), false); err != nil {
		b.t.Fatal(err)
	}
}

// A watched writer can be waited on for a text to appear.
type watched struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func newWatched() *watched { return &watched{more: make(chan struct{}, 1)} }

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.more <- struct{}{}:
	default:
	}
	return w.text.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// patience is for what must come; it is never waited for in full unless a test fails.
const patience = 30 * time.Second

// waitFor returns once the text has appeared.
func (w *watched) waitFor(t *testing.T, text string) {
	t.Helper()
	late := time.After(patience)
	for !strings.Contains(w.String(), text) {
		select {
		case <-w.more:
		case <-late:
			t.Fatalf("%q has not appeared in %q", text, w.String())
		}
	}
}
