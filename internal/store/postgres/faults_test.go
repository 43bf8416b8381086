package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	database "github.com/rouse-dev/rouse/internal/postgres"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
	"github.com/rouse-dev/rouse/internal/wake"
)

// The connection breaks while a transaction is committed: what was kept is not reported lost, nor done twice.
func TestCommitWithoutAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cut  pgtest.Cut
		runs int
	}{
		"kept": {pgtest.AfterNext, 1},
		"lost": {pgtest.BeforeNext, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := pgtest.NewProxy(t, pgtest.Database(t))
			s := open(t, proxy.Address())
			addApp(t, s, "app")
			add(t, s, occurrence("app", "topic", "first")) // so that its statements are prepared
			runs := 0
			update(t, s, func(tx store.Tx) error {
				if runs++; runs == 1 {
					proxy.Set(test.cut) // what is sent next is the commit
				}
				_, err := tx.Append(occurrence("app", "topic", "second"))
				return err
			})
			if runs != test.runs {
				t.Errorf("the transaction's function ran %d times, want %d", runs, test.runs)
			}
			add(t, s, occurrence("app", "topic", "third"))
			keys, last := keysOn(t, s, "app", "topic", 0)
			if diff := cmp.Diff([]string{"first", "second", "third"}, keys); diff != "" || last != 3 {
				t.Errorf("up to place %d (-want +got):\n%s", last, diff)
			}
		})
	}
}

// A connection that breaks otherwise is made again without anybody's noticing.
func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	proxy := pgtest.NewProxy(t, pgtest.Database(t))
	s := open(t, proxy.Address())
	addApp(t, s, "app")
	for round, key := range []string{"a", "b", "c"} {
		proxy.CutAll()
		update(t, s, func(tx store.Tx) error {
			if _, err := tx.App("app"); err != nil {
				return err
			}
			_, err := tx.Append(occurrence("app", "topic", key))
			return err
		})
		proxy.CutAll()
		if keys, _ := keysOn(t, s, "app", "topic", 0); len(keys) != round+1 {
			t.Errorf("%d occurrences after %d rounds", len(keys), round+1)
		}
	}
}

// One node's connection is ended by the server while it holds the lock. The other goes on, and so does the first.
func TestLockHolderEnds(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	here, there := open(t, address), open(t, address)
	addApp(t, here, "app")
	holds, ended := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var both sync.WaitGroup
	both.Go(func() {
		update(t, here, func(tx store.Tx) error {
			if _, err := tx.Append(occurrence("app", "topic", "here")); err != nil {
				return err
			}
			once.Do(func() { close(holds) })
			<-ended
			return nil
		})
	})
	<-holds
	both.Go(func() { add(t, there, occurrence("app", "topic", "there")) })
	pgtest.Exec(t, address, `DO $$ BEGIN
		WHILE (SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()) = 0 LOOP
			PERFORM pg_sleep(0.005), pg_stat_clear_snapshot();
		END LOOP;
	END $$`,
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()`)
	for len(mustKeys(t, there)) == 0 {
		if t.Failed() {
			break
		}
	}
	close(ended)
	both.Wait()
	if diff := cmp.Diff([]string{"there", "here"}, mustKeys(t, here)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func mustKeys(t *testing.T, s store.Store) []string {
	t.Helper()
	keys, _ := keysOn(t, s, "app", "topic", 0)
	return keys
}

// Text that PostgreSQL has no room for is an error of its own update alone.
func TestTextThatCannotBeKept(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.Database(t))
	addApp(t, s, "app")
	for name, bad := range map[string]string{"NUL": "a\x00b", "not UTF-8": "a\xffb"} {
		writes := map[string]func(store.Tx) error{
			"a conversation's user": func(tx store.Tx) error { return tx.PutConversation(wake.Conversation{ID: "c", App: "app", User: bad}) },
			"an app's name":         func(tx store.Tx) error { return tx.CreateApp(wake.App{ID: "b", Name: bad}) },
			"an occurrence's key":   func(tx store.Tx) error { _, err := tx.Append(occurrence("app", "topic", bad)); return err },
		}
		for what, write := range writes {
			var all sync.WaitGroup
			all.Go(func() {
				err := s.Update(t.Context(), write)
				if err == nil || errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s in %s: %v", name, what, err)
				}
			})
			all.Go(func() { add(t, s, occurrence("app", "topic", name+what)) })
			all.Wait()
		}
	}
	if keys := mustKeys(t, s); len(keys) != 6 {
		t.Errorf("%d of 6 neighbours were kept: %q", len(keys), keys)
	}
}

var testName = regexp.MustCompile(`/test_\d+\?`)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	of := func(t *testing.T, address, master string) error {
		d, err := database.Open(t.Context(), address)
		if err != nil {
			return err
		}
		s, err := postgres.Open(t.Context(), d, postgres.Options{Master: master})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	tests := map[string]struct {
		prepare func(t *testing.T, address string) string
		want    string // part of the error
	}{
		"another master key": {func(t *testing.T, address string) string {
			if err := of(t, address, "one"); err != nil {
				t.Fatal(err)
			}
			return address
		}, "another master key"},
		"a later version's": {func(t *testing.T, address string) string {
			if err := of(t, address, "other"); err != nil {
				t.Fatal(err)
			}
			pgtest.Exec(t, address, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)")
			return address
		}, "later version"},
		"an encoding without all characters": {func(t *testing.T, address string) string {
			pgtest.Exec(t, address, "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
			return testName.ReplaceAllString(address, "/latin?")
		}, "encoding LATIN1"},
		"somebody who may not": {func(t *testing.T, address string) string {
			pgtest.Exec(t, address, "CREATE ROLE guest LOGIN", "REVOKE CREATE ON SCHEMA public FROM public")
			return strings.Replace(address, "rouse@", "guest@", 1)
		}, store.ErrReadOnly.Error()},
		"what is not there": {func(t *testing.T, address string) string {
			return testName.ReplaceAllString(address, "/none?")
		}, "does not exist"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := test.prepare(t, pgtest.Database(t))
			if err := of(t, address, "other"); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that holds %q", err, test.want)
			}
		})
	}
}

// A database that cannot be reached is an error that says so, soon, and to who waits for nothing else at once.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	proxy := pgtest.NewProxy(t, pgtest.Database(t))
	s := open(t, proxy.Address())
	addApp(t, s, "app")
	proxy.Close()
	never := func() error { t.Error("ran without a database"); return nil }
	for range 3 {
		if err := s.Update(t.Context(), func(store.Tx) error { return never() }); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Update: %v", err)
		}
	}
	if err := s.View(t.Context(), func(store.Reader) error { return never() }); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("View: %v", err)
	}
	if _, err := s.Spend(t.Context(), "scope", "id", time.Now().Add(time.Hour)); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Spend: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.View(ended, func(store.Reader) error { return never() }); !errors.Is(err, context.Canceled) {
		t.Errorf("View with an ended context: %v", err)
	}
}

// A server that is set to lose what it was given is used, and whoever runs the core is told.
func TestWarnsOfLosses(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	for setting, want := range map[string]bool{"on": false, "local": false, "off": true} {
		pgtest.Exec(t, address, "ALTER DATABASE "+strings.Trim(testName.FindString(address), "/?")+" SET synchronous_commit = "+setting)
		d, err := database.Open(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		s, err := postgres.Open(t.Context(), d, postgres.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if warned := strings.Contains(log.String(), "does not wait for its disk"); warned != want {
			t.Errorf("synchronous_commit %s: warned %t, want %t", setting, warned, want)
		}
	}
}
