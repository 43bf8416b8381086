package bus_test

import (
	"sync"
	"testing"

	"github.com/rouse-dev/rouse/internal/bus"
)

func hinted(w *bus.Watch) bool {
	select {
	case <-w.C():
		return true
	default:
		return false
	}
}

func TestHintReachesWatchersOfItsKey(t *testing.T) {
	t.Parallel()
	var b bus.Local
	one, other := bus.Key{App: "a", Topic: "one"}, bus.Key{App: "a", Topic: "other"}
	w := b.Watch(one)
	defer w.Close()

	b.Hint(other, bus.Key{App: "b", Topic: "one"})
	if hinted(w) {
		t.Error("told of another key")
	}
	b.Hint(one)
	b.Hint(one)
	if !hinted(w) {
		t.Error("not told")
	}
	if hinted(w) {
		t.Error("two hints before a look are told twice")
	}
}

func TestHintAllReachesEverybody(t *testing.T) {
	t.Parallel()
	var b bus.Local
	b.HintAll() // nobody
	w := b.Watch(bus.Key{App: "a", Topic: "one"}, bus.Key{App: "a", Topic: "other"})
	defer w.Close()
	idle := b.Watch()
	defer idle.Close()
	b.HintAll()
	if !hinted(w) {
		t.Error("not told")
	}
	if hinted(idle) {
		t.Error("told, and watches nothing")
	}
}

func TestSetReplacesAndCloseEnds(t *testing.T) {
	t.Parallel()
	var b bus.Local
	one, other := bus.Key{App: "a", Topic: "one"}, bus.Key{App: "a", Topic: "other"}
	w := b.Watch(one)
	w.Set(other)
	b.Hint(one)
	if hinted(w) {
		t.Error("told of a key that was replaced")
	}
	b.Hint(other)
	if !hinted(w) {
		t.Error("not told of the new key")
	}
	w.Close()
	w.Close()
	b.Hint(other)
	if hinted(w) {
		t.Error("told after Close")
	}
}

func TestNotifyCallsAtEachHint(t *testing.T) {
	t.Parallel()
	var b bus.Local
	one, other := bus.Key{App: "a", Topic: "one"}, bus.Key{App: "a", Topic: "other"}
	calls := 0
	w := b.Notify(func() { calls++ }, one)
	b.Hint(one, other)
	b.Hint(other)
	b.HintAll()
	if calls != 2 || w.C() != nil {
		t.Errorf("called %d times, C is %v", calls, w.C())
	}
	w.Close()
	b.Hint(one)
	b.HintAll()
	if calls != 2 {
		t.Error("called after Close")
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	var b bus.Local
	key := bus.Key{App: "a", Topic: "t"}
	last := b.Watch(key)
	defer last.Close()
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			w := b.Watch(key)
			b.Hint(key)
			w.Set()
			w.Close()
		})
	}
	group.Wait()
	if !hinted(last) {
		t.Error("50 hints and not told")
	}
}
