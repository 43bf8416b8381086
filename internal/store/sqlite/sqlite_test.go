package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
	"github.com/rouse-dev/rouse/internal/store/storetest"
)

// The environment of a test binary that only opens a database and says how that went: the database, and whether to give up
// the rights of root before.
const (
	openEnv         = "ROUSE_TEST_OPEN"
	unprivilegedEnv = "ROUSE_TEST_UNPRIVILEGED"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(openEnv); path != "" {
		fmt.Print(openOnly(path))
		return
	}
	if path := os.Getenv(crashEnv); path != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(path))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func openOnly(path string) string {
	if os.Getenv(unprivilegedEnv) != "" {
		if err := giveUpPrivileges(); err != nil {
			return err.Error()
		}
	}
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return err.Error()
	}
	return "opened"
}

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	var paths sync.Map // of the stores
	openAt := func(t *testing.T, path string) store.Store {
		s := open(t, path)
		paths.Store(s, path)
		return s
	}
	storetest.Run(t, func(t *testing.T) store.Store {
		return openAt(t, filepath.Join(t.TempDir(), "rouse.db"))
	}, func(t *testing.T, s store.Store) store.Store {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		path, _ := paths.Load(s)
		return openAt(t, path.(string))
	})
}
