package postgres_test

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	database "github.com/rouse-dev/rouse/internal/postgres"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
	"github.com/rouse-dev/rouse/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(crashEnv); address != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(address))
		os.Exit(1)
	}
	status := pgtest.Run(m)
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// open opens a store on the database at that address, and closes it with the test.
func open(t testing.TB, address string) *postgres.Store {
	t.Helper()
	d, err := database.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	s, err := postgres.Open(t.Context(), d, postgres.Options{})
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
	conform(t, pgtest.Database)
}

// conform runs the suite every store passes, each test on a database that the function gives.
func conform(t *testing.T, database func(testing.TB) string) {
	var addresses sync.Map // of the stores
	openAt := func(t *testing.T, address string) store.Store {
		s := open(t, address)
		addresses.Store(s, address)
		return s
	}
	storetest.Run(t, func(t *testing.T) store.Store {
		return openAt(t, database(t))
	}, func(t *testing.T, s store.Store) store.Store {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		address, _ := addresses.Load(s)
		return openAt(t, address.(string))
	})
}
