package core_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// That a line was out for a while on an old stream, which may lead nowhere, does not say that the newest has it.
func TestOnlyTheNewestStreamMovesThePosition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := b.subscribe(claude, "j1")
	old, newest := b.inbox(done), b.inbox(done)
	b.emit("j1", "1")
	messages, err := old.Read(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Settle(t.Context(), receipt(messages...)); err != nil {
		t.Fatal(err)
	}
	third := b.inbox(done)
	if diff := cmp.Diff([]string{"j1 has 1"}, b.read(third)); diff != "" {
		t.Errorf("after the old one settled: %s", diff)
	}
	third.Close()
	newest.Close()
	if err := old.Settle(t.Context(), receipt(messages...)); err != nil {
		t.Fatal(err)
	}
	if texts := b.read(b.inbox(done)); len(texts) != 0 {
		t.Errorf("once it was the newest again it settled, and yet a new one reads %q", texts)
	}
}

func TestTheOldestOfTooManyStreamsIsSuperseded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := b.subscribe(claude, "j1")
	first := b.inbox(done)
	for range 3 {
		b.inbox(done)
	}
	select {
	case <-first.Superseded():
		t.Fatal("one of four is superseded")
	default:
	}
	fifth := b.inbox(done)
	select {
	case <-first.Superseded():
	default:
		t.Error("the first of five is not superseded")
	}
	select {
	case <-fifth.Superseded():
		t.Error("the newest is superseded")
	default:
	}
}
