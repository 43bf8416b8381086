package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
	"github.com/rouse-dev/rouse/internal/wake"
)

// TestViewsWait has more views than there are connections: one ends its wait with its context, one with the store, and
// none of them runs.
func TestViewsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		free := make(chan struct{})
		var all sync.WaitGroup
		for range sqlite.Viewers(s) {
			all.Go(func() {
				if err := s.View(t.Context(), func(store.Reader) error { <-free; return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		never := func(store.Reader) error { t.Error("a view ran without a connection"); return nil }
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			if err := s.View(ctx, never); !errors.Is(err, context.Canceled) {
				t.Errorf("with its context ended: %v", err)
			}
		})
		all.Go(func() {
			if err := s.View(t.Context(), never); !errors.Is(err, store.ErrClosed) {
				t.Errorf("with the store closed: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		all.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		close(free)
		all.Wait()
	})
}

// TestCheckpointInBackground finds what was committed in the database's file a moment later, without a close.
func TestCheckpointInBackground(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "rouse.db")
		s := open(t, path)
		size := func() int64 {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			return info.Size()
		}
		update(t, s, func(tx store.Tx) error { return tx.CreateApp(wake.App{ID: "app"}) })
		time.Sleep(time.Second)
		before := size()
		update(t, s, func(tx store.Tx) error {
			_, err := tx.Append(wake.Occurrence{App: "app", Topics: []string{"topic"}, Data: make([]byte, 200_000)})
			return err
		})
		if got := size(); got != before {
			t.Errorf("the file grew to %d at once, which says nothing then", got)
		}
		time.Sleep(time.Second)
		if got := size(); got < before+150_000 {
			t.Errorf("the file has %d bytes after %d, want that much more", got, before)
		}
	})
}
