package trace_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/trace"
)

func TestFollowersGetEntriesUntilClosed(t *testing.T) {
	t.Parallel()
	var feed trace.Feed
	feed.Put(trace.Entry{Kind: trace.Emitted, Event: "before"})
	follower := feed.Follow()
	want := trace.Entry{At: time.Unix(1, 0), Kind: trace.Emitted, Event: "during"}
	feed.Put(want)
	follower.Close()
	follower.Close()
	feed.Put(trace.Entry{Kind: trace.Emitted, Event: "after"})
	if got := <-follower.C(); !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
	select {
	case got := <-follower.C():
		t.Errorf("also got %+v", got)
	default:
	}
}

func TestASlowFollowerIsToldWhatItMissed(t *testing.T) {
	t.Parallel()
	var feed trace.Feed
	follower := feed.Follow()
	defer follower.Close()
	sent := 0
	for len(follower.C()) < cap(follower.C()) {
		feed.Put(trace.Entry{Kind: trace.Emitted})
		sent++
	}
	for range 7 {
		feed.Put(trace.Entry{Kind: trace.Emitted})
	}
	for range sent {
		<-follower.C()
	}
	feed.Put(trace.Entry{Kind: trace.Delivered})
	if got := <-follower.C(); got.Kind != trace.Missed || got.Count != 7 {
		t.Errorf("got %+v, want 7 missed", got)
	}
	if got := <-follower.C(); got.Kind != trace.Delivered {
		t.Errorf("got %+v, want the next entry", got)
	}
}
