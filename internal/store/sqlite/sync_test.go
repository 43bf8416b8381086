package sqlite_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
	"github.com/rouse-dev/rouse/internal/wake"
)

// inBackground starts a call and returns where its end will be.
func inBackground(call func() error) <-chan error {
	end := make(chan error, 1)
	go func() { end <- call() }()
	return end
}

// TestNoViewShowsUnsynced holds the sync of a commit back. A view that could see it does not end before it is on the disk.
func TestNoViewShowsUnsynced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rouse.db")
	synctest.Test(t, func(t *testing.T) {
		s := open(t, path)
		update(t, s, func(tx store.Tx) error { return tx.CreateApp(wake.App{ID: "app", CreatedAt: time.Now()}) })
		begun, end := sqlite.HoldSync(s)
		emitted := inBackground(func() error {
			return s.Update(t.Context(), func(tx store.Tx) error { return emit(tx, "key") })
		})
		<-begun
		saw := 0
		viewed := inBackground(func() error {
			return s.View(t.Context(), func(r store.Reader) error {
				found, err := r.Occurrences("app", []string{"topic"}, 0, 10)
				saw = len(found)
				return err
			})
		})
		looked := inBackground(func() error {
			return s.Update(t.Context(), func(tx store.Tx) error {
				_, err := tx.Conversation("none")
				return err
			})
		})
		synctest.Wait()
		if saw != 1 {
			t.Fatalf("the view saw %d occurrences: this test needs one that is committed", saw)
		}
		for what, end := range map[string]<-chan error{"the emit": emitted, "a view": viewed, "an update that only reads": looked} {
			select {
			case err := <-end:
				t.Errorf("%s ended with %v before the commit was on the disk", what, err)
			default:
			}
		}
		close(end)
		if err := <-emitted; err != nil {
			t.Error(err)
		}
		if err := <-viewed; err != nil {
			t.Error(err)
		}
		if err := <-looked; !errors.Is(err, store.ErrNotFound) {
			t.Errorf("an update that only reads ended with %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestSyncFails has the system fail a sync, as it does for what is no file of a disk: all that waited for it fails, and
// nothing more is read or written. What was acknowledged before is there after a restart.
func TestSyncFails(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "rouse.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	update(t, s, func(tx store.Tx) error {
		return errors.Join(tx.CreateApp(wake.App{ID: "app"}), emit(tx, "before"))
	})
	begun, end := sqlite.HoldSync(s)
	emitted := inBackground(func() error {
		return s.Update(t.Context(), func(tx store.Tx) error { return emit(tx, "unknown") })
	})
	<-begun
	noFile, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer noFile.Close()
	defer other.Close()
	end <- noFile
	never := errors.New("it ran")
	lost := <-emitted
	_, spent := s.Spend(t.Context(), "scope", "id", time.Now().Add(time.Hour))
	for what, err := range map[string]error{
		"the emit": lost,
		"Update":   s.Update(t.Context(), func(store.Tx) error { return never }),
		"View":     s.View(t.Context(), func(store.Reader) error { return never }),
		"Spend":    spent,
		"Scrub":    s.Scrub(t.Context()),
	} {
		if !errors.Is(err, store.ErrSyncFailed) {
			t.Errorf("%s: %v, want ErrSyncFailed", what, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := strings.Count(log.String(), "\n"); got != 1 {
		t.Errorf("%d lines in the log, want 1: %s", got, &log)
	}
	// Whether the other one was kept is not known.
	got := keys(t, open(t, path))
	if diff := cmp.Diff([]string{"before"}, got[:min(1, len(got))]); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
}
