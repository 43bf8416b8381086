package group

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/store"
)

// A platter is a disk whose syncs the test holds back, or times.
type platter struct {
	begun int
	ends  chan error
}

func newPlatter() *platter { return &platter{ends: make(chan error)} }

func (p *platter) sync() error {
	p.begun++
	return <-p.ends
}

// settled starts a call of Synced with a mark of now.
func settled(t *testing.T, w *Writer) <-chan error {
	m := w.Mark()
	return startCall(t, func() error { return w.Synced(context.Background(), m) })
}

// TestNothingBeforeItsSync holds a sync back: neither an update that was committed nor one that saw that, nor a reader, ends
// before. The next transaction runs meanwhile, and commits when the disk is free.
func TestNothingBeforeItsSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, p := &ledger{}, newPlatter()
		w := New(l, Options{Sync: p.sync})
		is(t, "a reader of nothing", settled(t, w), nil)
		release := make(chan struct{})
		first := start(t, w, func(tx store.Tx) error { <-release; return write("a", nil)(tx) })
		second := start(t, w, write("b", nil))
		close(release)
		waits(t, "the first", first)
		waits(t, "the second", second)
		holds(t, l, "a", "b")
		reader := settled(t, w)
		waits(t, "a reader of both", reader)
		ran := false
		reads := start(t, w, func(store.Tx) error { ran = true; return nil })
		fails := start(t, w, func(tx store.Tx) error { return write("bad", errOnPurpose)(tx) })
		if !ran {
			t.Error("no transaction runs while the disk is busy")
		}
		waits(t, "one that only reads", reads)
		waits(t, "one that fails", fails)

		p.ends <- nil
		is(t, "the first", first, nil)
		is(t, "the second", second, nil)
		is(t, "a reader of both", reader, nil)
		is(t, "one that only reads", reads, nil)
		is(t, "one that fails", fails, errOnPurpose)
		if p.begun != 1 {
			t.Errorf("%d syncs, want 1", p.begun)
		}
		w.Close()
		holds(t, l, "a", "b")
	})
}

// TestReaderWithinCommit is a reader whose snapshot was taken while a commit was under way: it waits for that, and if the
// commit fails for nothing.
func TestReaderWithinCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		committing := make(chan error)
		l, p := &ledger{commit: func() error { return <-committing }}, newPlatter()
		w := New(l, Options{Sync: p.sync})
		bad := start(t, w, write("bad", nil))
		reader := settled(t, w)
		waits(t, "its reader", reader)
		for range 2 { // it is tried again without chores
			committing <- errOnPurpose
		}
		is(t, "the update", bad, errOnPurpose)
		is(t, "its reader", reader, nil)

		good := start(t, w, write("good", nil))
		reader = settled(t, w)
		committing <- nil
		waits(t, "the next reader", reader)
		ctx, cancel := context.WithCancel(t.Context())
		impatient := startCall(t, func() error { return w.Synced(ctx, w.Mark()) })
		cancel()
		is(t, "one whose context ends", impatient, context.Canceled)
		p.ends <- nil
		is(t, "the next reader", reader, nil)
		is(t, "the next update", good, nil)
		go func() { committing <- nil }() // of the last chores
		w.Close()
	})
}

// TestChoresAreSynced has a reader see what chores wrote without an update.
func TestChoresAreSynced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlatter()
		w := New(&ledger{chores: func(bool) (bool, error) { return true, nil }}, Options{Sync: p.sync})
		w.WakeForChores()
		synctest.Wait()
		reader := settled(t, w)
		waits(t, "the reader", reader)
		p.ends <- nil
		is(t, "the reader", reader, nil)
		closed := startCall(t, func() error { w.Close(); return nil })
		reader = settled(t, w)
		waits(t, "Close", closed)
		p.ends <- nil
		is(t, "Close", closed, nil)
		is(t, "a reader meanwhile", reader, nil)
	})
}

// TestSyncFails lets nothing more happen after a failed sync.
func TestSyncFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l, p := &ledger{}, newPlatter()
		w := New(l, Options{Sync: p.sync, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		release := hold(t, w)
		ends := map[string]<-chan error{
			"one that wrote":    start(t, w, write("a", nil)),
			"one that only saw": start(t, w, read(nil)),
			"one that failed":   start(t, w, read(store.ErrNotFound)),
		}
		go release()
		synctest.Wait()
		ends["a reader"] = settled(t, w)
		ends["one that runs meanwhile"] = start(t, w, write("b", nil))
		if err := w.Failed(); err != nil {
			t.Errorf("failed already: %v", err)
		}
		p.ends <- errOnPurpose
		synctest.Wait()
		ends["a later one"] = start(t, w, write("c", nil))
		ends["a later reader"] = settled(t, w)
		ends["between transactions"] = startCall(t, func() error { return w.Between(t.Context(), func() error { return nil }) })
		for what, end := range ends {
			is(t, what, end, store.ErrSyncFailed)
		}
		if err := w.Failed(); err == nil || !strings.Contains(err.Error(), errOnPurpose.Error()) {
			t.Errorf("Failed is %v", err)
		}
		w.Close()
		if p.begun != 1 {
			t.Errorf("%d syncs, want no second one", p.begun)
		}
		if got := strings.Count(log.String(), "\n"); got != 1 || !strings.Contains(log.String(), errOnPurpose.Error()) {
			t.Errorf("the log: %s", &log)
		}
	})
}

// TestShares counts how many updates share a sync, on disks of different speed, when each takes a microsecond.
func TestShares(t *testing.T) {
	t.Parallel()
	const callers, each, updates = 128, time.Microsecond, 100
	shares := map[time.Duration]float64{}
	for _, takes := range []time.Duration{10 * time.Microsecond, 10 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			syncs := 0
			w := New(&ledger{}, Options{Sync: func() error { syncs++; time.Sleep(takes); return nil }})
			for c := range callers {
				go func() {
					for i := range updates {
						err := w.Update(context.Background(), func(tx store.Tx) error {
							time.Sleep(each)
							return write(fmt.Sprint(c, "/", i), nil)(tx)
						})
						if err != nil {
							t.Error(err)
						}
					}
				}()
			}
			synctest.Wait()
			time.Sleep(time.Hour)
			w.Close()
			shares[takes] = float64(callers*updates) / float64(syncs)
		})
	}
	got := map[time.Duration]bool{}
	for takes, share := range shares {
		got[takes] = share > callers/2
	}
	want := map[time.Duration]bool{10 * time.Microsecond: false, 10 * time.Millisecond: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("whether more than half of the callers share a sync (-want +got):\n%s\n%v", diff, shares)
	}
}
