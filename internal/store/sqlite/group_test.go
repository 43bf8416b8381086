package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
	"github.com/rouse-dev/rouse/internal/wake"
)

var errOnPurpose = errors.New("on purpose")

// newStore opens an empty store with an app named app.
func newStore(t *testing.T) *sqlite.Store {
	t.Helper()
	s := open(t, filepath.Join(t.TempDir(), "rouse.db"))
	update(t, s, func(tx store.Tx) error { return tx.CreateApp(wake.App{ID: "app", CreatedAt: time.Now()}) })
	return s
}

func update(t *testing.T, s store.Store, f func(store.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

func view(t *testing.T, s store.Store, f func(store.Reader)) {
	t.Helper()
	if err := s.View(t.Context(), func(r store.Reader) error { f(r); return nil }); err != nil {
		t.Fatal(err)
	}
}

// emit appends an occurrence with that key to the topic "topic".
func emit(tx store.Tx, key string) error {
	_, err := tx.Append(wake.Occurrence{App: "app", Topics: []string{"topic"}, Key: key, At: time.Now()})
	return err
}

// keys lists the keys of what is in the log, in order.
func keys(t *testing.T, s store.Store) []string {
	t.Helper()
	var keys []string
	view(t, s, func(r store.Reader) {
		found, err := r.Occurrences("app", []string{"topic"}, 0, 100_000)
		if err != nil {
			t.Error(err)
		}
		for _, o := range found {
			keys = append(keys, o.Key)
		}
	})
	return keys
}

// hold keeps the writer busy until the returned function is called, so that what is queued meanwhile shares a transaction.
func hold(t *testing.T, s *sqlite.Store) (release func()) {
	t.Helper()
	begun, free := make(chan struct{}), make(chan struct{})
	var holding sync.WaitGroup
	var once sync.Once
	holding.Go(func() {
		_ = s.Update(context.Background(), func(store.Tx) error {
			once.Do(func() { close(begun) })
			<-free
			return nil
		})
	})
	<-begun
	return func() {
		close(free)
		holding.Wait()
	}
}

// queued waits until so many updates wait for the writer.
func queued(s *sqlite.Store, n int) {
	for sqlite.Queued(s) != n {
		runtime.Gosched()
	}
}

// TestGroup has updates share a transaction with some that fail in every way there is.
func TestGroup(t *testing.T) {
	t.Parallel()
	good := func(key string) func(store.Tx) error {
		return func(tx store.Tx) error { return emit(tx, key) }
	}
	bad := map[string]func(store.Tx) error{
		"fails before it writes": func(store.Tx) error { return errOnPurpose },
		"fails after it wrote":   func(tx store.Tx) error { return errors.Join(emit(tx, "bad"), errOnPurpose) },
		"panics":                 func(tx store.Tx) error { panic(errors.Join(emit(tx, "bad"), errOnPurpose)) },
		"ends its goroutine": func(tx store.Tx) error {
			if emit(tx, "bad") == nil {
				runtime.Goexit()
			}
			return nil
		},
		"cannot be committed": func(tx store.Tx) error {
			return errors.Join(
				sqlite.Exec(tx, "PRAGMA defer_foreign_keys = 1"),
				sqlite.Exec(tx, "INSERT INTO manifests (app, version, body) VALUES ('none', 1, x'7b7d')"),
			)
		},
		"hides a failure that may have undone more": func(tx store.Tx) error {
			_, _ = tx.App("app")
			sqlite.Spoil(tx, errOnPurpose)
			return nil
		},
	}
	for what, f := range bad {
		for _, place := range []int{0, 2, 4} {
			t.Run(fmt.Sprintf("number %d %s", place, what), func(t *testing.T) {
				t.Parallel()
				s := newStore(t)
				release := hold(t, s)
				var all sync.WaitGroup
				var want []string
				for i := range 5 {
					f, kept := f, false
					if i != place {
						key := fmt.Sprint("good ", i)
						want = append(want, key)
						f, kept = good(key), true
					}
					all.Go(func() {
						defer func() { _ = recover() }()
						if err := s.Update(t.Context(), f); (err == nil) != kept {
							t.Errorf("update %d returned %v", i, err)
						}
					})
					queued(s, i+1)
				}
				release()
				all.Wait()
				if diff := cmp.Diff(want, keys(t, s)); diff != "" {
					t.Errorf("in the log (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestGroupFailingAll has every update of a group fail after it wrote.
func TestGroupFailingAll(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	release := hold(t, s)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			err := s.Update(t.Context(), func(tx store.Tx) error {
				return errors.Join(emit(tx, fmt.Sprint(i)), errOnPurpose)
			})
			if !errors.Is(err, errOnPurpose) {
				t.Errorf("got %v", err)
			}
		})
	}
	queued(s, 50)
	release()
	all.Wait()
	if got := keys(t, s); got != nil {
		t.Errorf("in the log: %q", got)
	}
}

// TestSameKeyInGroup gives the error of a key that is taken by a neighbour only when the neighbour is kept.
func TestSameKeyInGroup(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	release := hold(t, s)
	var all sync.WaitGroup
	first := true
	all.Go(func() {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			if err := emit(tx, "key"); err != nil {
				return err
			}
			if first {
				first = false
				return nil
			}
			return errOnPurpose
		})
		if !errors.Is(err, errOnPurpose) {
			t.Errorf("the first returned %v", err)
		}
	})
	queued(s, 1)
	all.Go(func() {
		if err := s.Update(t.Context(), func(tx store.Tx) error { return emit(tx, "key") }); err != nil {
			t.Errorf("the second returned %v", err)
		}
	})
	queued(s, 2)
	all.Go(func() {
		err := s.Update(t.Context(), func(tx store.Tx) error { return errors.Join(emit(tx, "bad"), errOnPurpose) })
		if !errors.Is(err, errOnPurpose) {
			t.Errorf("the third returned %v", err)
		}
	})
	queued(s, 3)
	release()
	all.Wait()
	if diff := cmp.Diff([]string{"key"}, keys(t, s)); diff != "" {
		t.Errorf("in the log (-want +got):\n%s", diff)
	}
}

func TestContextEndsInQueue(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	release := hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error)
	go func() { returned <- s.Update(ctx, func(tx store.Tx) error { return emit(tx, "never") }) }()
	queued(s, 1)
	cancel()
	if err := <-returned; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	queued(s, 0)
	release()
	if got := keys(t, s); got != nil {
		t.Errorf("in the log: %q", got)
	}
}

// TestCloseRunsQueued closes the store while updates wait.
func TestCloseRunsQueued(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rouse.db")
	s := open(t, path)
	update(t, s, func(tx store.Tx) error { return tx.CreateApp(wake.App{ID: "app"}) })
	release := hold(t, s)
	var all sync.WaitGroup
	all.Go(func() {
		if err := s.Update(t.Context(), func(tx store.Tx) error { return emit(tx, "queued") }); err != nil {
			t.Error(err)
		}
	})
	queued(s, 1)
	all.Go(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	release()
	all.Wait()
	if diff := cmp.Diff([]string{"queued"}, keys(t, open(t, path))); diff != "" {
		t.Errorf("in the log (-want +got):\n%s", diff)
	}
}

// TestManyAtOnce appends as many occurrences in one transaction as fit no statement, one, and several.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	var want []string
	for _, n := range []int{1, 7, 8, 9, 31, 32, 33, 41, 100} {
		update(t, s, func(tx store.Tx) error {
			for i := range n {
				if err := emit(tx, fmt.Sprint(n, "/", i)); err != nil {
					return err
				}
			}
			return nil
		})
		for i := range n {
			want = append(want, fmt.Sprint(n, "/", i))
		}
		update(t, s, sqlite.WriteIndex)
		if diff := cmp.Diff(want, keys(t, s)); diff != "" {
			t.Fatalf("after %d (-want +got):\n%s", n, diff)
		}
	}
}
