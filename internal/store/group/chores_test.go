package group

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// TestChores has chores done with an update, without one, and at the end.
func TestChores(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lasts []bool
		l := &ledger{}
		l.chores = func(last bool) (bool, error) {
			lasts = append(lasts, last)
			l.fresh = append(l.fresh, "chore")
			return true, nil
		}
		w := New(l, Options{})
		is(t, "a", start(t, w, write("a", nil)), nil)
		holds(t, l, "chore", "a")
		w.WakeForChores()
		synctest.Wait()
		holds(t, l, "chore", "a", "chore")
		w.Close()
		holds(t, l, "chore", "a", "chore", "chore")
		if diff := cmp.Diff([]bool{false, false, true}, lasts); diff != "" {
			t.Errorf("said to be the last (-want +got):\n%s", diff)
		}
	})
}

// TestChoresFail keeps updates although chores fail, and says so once.
func TestChoresFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := &ledger{}
		fails := true
		l.chores = func(bool) (bool, error) {
			l.fresh = append(l.fresh, "chore")
			if fails {
				return true, errOnPurpose
			}
			return true, nil
		}
		w := New(l, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		is(t, "a", start(t, w, write("a", nil)), nil)
		is(t, "b", start(t, w, write("b", nil)), nil)
		w.WakeForChores()
		synctest.Wait()
		holds(t, l, "a", "b")
		fails = false
		is(t, "c", start(t, w, write("c", nil)), nil)
		holds(t, l, "a", "b", "chore", "c")
		w.Close()
		if got := strings.Count(log.String(), errOnPurpose.Error()); got != 1 {
			t.Errorf("%d lines in the log, want 1: %s", got, &log)
		}
	})
}
