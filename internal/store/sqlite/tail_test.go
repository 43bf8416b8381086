package sqlite

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/wake"
)

func TestTail(t *testing.T) {
	t.Parallel()
	a, b := topicKey{"app", "a"}, topicKey{"app", "b"}
	tail := newTail(10)
	tail.add("app", []string{"a"}, 11)
	tail.add("app", []string{"b", "a", "b"}, 12)
	tail.add("other", []string{"a"}, 13)
	tail.add("app", []string{"a"}, 14)

	check := func(what string, key topicKey, indexed, after, through wake.Seq, limit int, want []wake.Seq) {
		t.Helper()
		got, ok := tail.on(key, indexed, after, through, limit)
		if diff := cmp.Diff(want, append([]wake.Seq(nil), got...)); diff != "" || !ok {
			t.Errorf("%s: %v (-want +got):\n%s", what, ok, diff)
		}
	}
	check("all", a, 10, 0, 14, 10, []wake.Seq{11, 12, 14})
	check("once each", b, 10, 0, 14, 10, []wake.Seq{12})
	check("what is committed", a, 10, 0, 13, 10, []wake.Seq{11, 12})
	check("after a place", a, 10, 11, 14, 10, []wake.Seq{12, 14})
	check("after what is indexed", a, 12, 11, 14, 10, []wake.Seq{14})
	check("at most", a, 10, 0, 14, 2, []wake.Seq{11, 12})
	check("nothing", topicKey{"app", "c"}, 10, 0, 14, 10, nil)

	want := []run{
		{a, []wake.Seq{12, 14}}, {b, []wake.Seq{12}}, {topicKey{"other", "a"}, []wake.Seq{13}},
	}
	if diff := cmp.Diff(want, tail.runs(11), cmp.AllowUnexported(run{}, topicKey{})); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}

	tail.cutAfter(12)
	check("after a rollback", a, 10, 0, 14, 10, []wake.Seq{11, 12})
	if tail.count != 3 {
		t.Errorf("count %d after a rollback, want 3", tail.count)
	}
	tail.cutThrough(11)
	check("after indexing", a, 11, 0, 14, 10, []wake.Seq{12})
	if _, ok := tail.on(a, 10, 0, 14, 10); ok {
		t.Error("a reader whose index ends before the tail begins was answered from it")
	}
	tail.cutThrough(12)
	if tail.count != 0 || len(tail.places) != 0 {
		t.Errorf("count %d with %d topics after all was indexed", tail.count, len(tail.places))
	}
}

func TestTailRipens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tail := newTail(0)
		ripe := func() bool { return tail.ripe(time.Now(), 3, time.Second) }
		time.Sleep(time.Minute)
		if ripe() {
			t.Error("ripe when empty")
		}
		tail.add("app", []string{"a", "b"}, 1)
		if ripe() {
			t.Error("ripe at once")
		}
		time.Sleep(time.Second)
		if !ripe() {
			t.Error("not ripe after a second")
		}
		tail.add("app", []string{"a"}, 2)
		tail.cutThrough(1)
		if ripe() {
			t.Error("ripe although the old entry is gone")
		}
		tail.add("app", []string{"a", "b"}, 3)
		if !ripe() {
			t.Error("not ripe with three entries")
		}
	})
}
