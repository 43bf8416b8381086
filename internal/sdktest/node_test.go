//go:build unix

package sdktest

import (
	"log/slog"
	"testing"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/server"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
)

// databases are those a core can keep its log in. Each makes the server's options name an empty one.
var databases = map[string]func(t *testing.T, o *server.Options){
	"SQLite":     func(*testing.T, *server.Options) {},
	"PostgreSQL": func(t *testing.T, o *server.Options) { o.Database = pgtest.Database(t) },
}

// greed is how much of each kind one user may have in these tests.
const greed = 10

// A node is a core that runs.
type node struct {
	*server.Server
	t *testing.T
}

// newNode starts a core, which stops with the test.
func newNode(t *testing.T, database func(*testing.T, *server.Options), limits core.Limits) *node {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	options := server.Options{Data: t.TempDir(), Listen: "127.0.0.1:0", PrivateWebhooks: true, NoAdmin: true, Limits: limits, Logger: logger}
	database(t, &options)
	running, err := server.Start(t.Context(), options)
	if err != nil {
		t.Fatalf("starting a core: %v", err)
	}
	t.Cleanup(func() {
		if err := running.Shutdown(); err != nil {
			t.Errorf("stopping the core: %v", err)
		}
	})
	return &node{running, t}
}

// newKey makes an app and returns a key of it.
func (n *node) newKey(app string) string {
	n.t.Helper()
	if _, err := n.Core().CreateApp(n.t.Context(), app, ""); err != nil {
		n.t.Fatalf("making the app: %v", err)
	}
	_, key, err := n.Core().CreateKey(n.t.Context(), app, "its key")
	if err != nil {
		n.t.Fatalf("making a key: %v", err)
	}
	return key.Reveal()
}
