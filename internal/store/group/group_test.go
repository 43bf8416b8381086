package group

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/store"
)

// start starts an update and returns, once it waits for something, where its end will be told: its error, its panic, or
// errExited.
func start(t *testing.T, w *Writer, f func(store.Tx) error) <-chan error {
	return startCall(t, func() error { return w.Update(context.Background(), f) })
}

func startCall(t *testing.T, call func() error) <-chan error {
	t.Helper()
	end := make(chan error, 1)
	go func() {
		err := errExited
		defer func() {
			if p := recover(); p != nil {
				err = p.(error)
			}
			end <- err
		}()
		err = call()
	}()
	synctest.Wait()
	return end
}

var errExited = errors.New("its goroutine ended")

// hold keeps the Writer busy until release is called, so that what is queued meanwhile shares a transaction.
func hold(t *testing.T, w *Writer) (release func()) {
	free := make(chan struct{})
	held := start(t, w, func(store.Tx) error { <-free; return nil })
	return func() {
		close(free)
		<-held
	}
}

// is checks an update's end.
func is(t *testing.T, what string, end <-chan error, want error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-end:
		if !errors.Is(err, want) {
			t.Errorf("%s ended with %v, want %v", what, err, want)
		}
	default:
		t.Errorf("%s has not ended", what)
	}
}

// waits checks that an update has not ended.
func waits(t *testing.T, what string, end <-chan error) {
	t.Helper()
	synctest.Wait()
	if len(end) > 0 {
		t.Errorf("%s ended with %v", what, <-end)
	}
}

func holds(t *testing.T, l *ledger, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, l.words()); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// TestFailures has five updates share a transaction, one of which fails in some way.
func TestFailures(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		f    func(store.Tx) error
		want error
	}{
		"before it writes":    {read(errOnPurpose), errOnPurpose},
		"after it wrote":      {write("bad", errOnPurpose), errOnPurpose},
		"by a panic":          {func(tx store.Tx) error { panic(write("bad", nil)(tx)) }, errPanic},
		"by its goroutine":    {func(tx store.Tx) error { _ = write("bad", nil)(tx); runtime.Goexit(); return nil }, errExited},
		"and says it did not": {func(tx store.Tx) error { tx.(*entry).l.broken = errOnPurpose; return nil }, errOnPurpose},
		"with the commit":     {write(uncommittable, nil), errOnPurpose},
	} {
		for place := range 5 {
			t.Run(fmt.Sprintf("number %d %s", place, what), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					l := &ledger{}
					w := New(l, Options{})
					release := hold(t, w)
					var ends []<-chan error
					var want []string
					for i := range 5 {
						f, word := test.f, string(rune('a'+i))
						if i != place {
							want = append(want, word)
							f = write(word, nil)
						}
						ends = append(ends, start(t, w, f))
					}
					release()
					for i, end := range ends {
						if i == place {
							is(t, "the one that fails", end, test.want)
						} else {
							is(t, "another", end, nil)
						}
					}
					holds(t, l, want...)
					w.Close()
				})
			})
		}
	}
}

// TestContextAndClose has one update leave the queue, one wait there while the Writer is closed, and one come after.
func TestContextAndClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		w := New(l, Options{})
		release := hold(t, w)
		ctx, cancel := context.WithCancel(t.Context())
		left := startCall(t, func() error { return w.Update(ctx, write("left", nil)) })
		queued := start(t, w, write("queued", nil))
		if got := w.Queued(); got != 2 {
			t.Errorf("%d wait, want 2", got)
		}
		cancel()
		is(t, "the one that left", left, context.Canceled)
		closed := startCall(t, func() error { w.Close(); return nil })
		is(t, "one after Close", start(t, w, write("late", nil)), store.ErrClosed)
		waits(t, "Close", closed)
		release()
		is(t, "the one that was queued", queued, nil)
		is(t, "Close", closed, nil)
		holds(t, l, "queued")
		if err := w.Update(ctx, write("late", nil)); !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %v", err)
		}
	})
}

// TestBetween runs functions between transactions, in their turn.
func TestBetween(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		w := New(l, Options{})
		between := func(what string, f func() error) <-chan error {
			return startCall(t, func() error {
				return w.Between(context.Background(), func() error { return l.note(what, f()) })
			})
		}
		release := hold(t, w)
		a := start(t, w, write("a", nil))
		fails := between("between", func() error { return errOnPurpose })
		ends := between("", func() error { runtime.Goexit(); return nil })
		panics := between("", func() error { panic("on purpose") })
		b := start(t, w, write("b", nil))
		release()
		is(t, "a", a, nil)
		is(t, "what fails", fails, errOnPurpose)
		is(t, "what ends its goroutine", ends, errExited)
		is(t, "what panics", panics, errPanic)
		is(t, "b", b, nil)
		w.Close()
		want := []string{"begin", "commit", "between: on purpose", "begin", "commit", "begin", "commit"}
		if diff := cmp.Diff(want, l.calls()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// TestAgain repeats a transaction that was ended from outside, and gives up in the end.
func TestAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left := 2
		l := &ledger{commit: func() error {
			if left > 0 {
				left--
				return fmt.Errorf("connection lost: %w", ErrAgain)
			}
			return nil
		}}
		w := New(l, Options{})
		defer w.Close()
		is(t, "two tries too many", start(t, w, write("a", nil)), nil)
		left = 1000
		is(t, "a thousand", start(t, w, write("b", nil)), ErrAgain)
		if got := 1000 - left; got < maxTries || got > 2*maxTries {
			t.Errorf("tried %d times", got)
		}
		left = 0
		is(t, "none", start(t, w, write("c", nil)), nil)
		holds(t, l, "a", "c")
	})
}

// TestDatabaseGone answers updates of a database that does not begin.
func TestDatabaseGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{begin: func() error { return errOnPurpose }}
		w := New(l, Options{})
		defer w.Close()
		release := hold(t, w)
		a, b := start(t, w, write("a", nil)), start(t, w, write("b", nil))
		go release()
		is(t, "a", a, errOnPurpose)
		is(t, "b", b, errOnPurpose)
		holds(t, l)
	})
}
