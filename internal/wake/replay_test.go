package wake_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/wake"
)

func TestAReplayTakesWhatLiesBeforeItsSubscription(t *testing.T) {
	t.Parallel()
	at := time.Now()
	s := wake.Subscription{ID: "s", App: "a", Topic: "t", From: 10, ExpiresAt: at.Add(time.Hour)}
	replay := wake.Replay{Subscription: "s", From: 5, After: 5, Until: 10}
	for seq, want := range map[wake.Seq][2]bool{5: {false, false}, 6: {true, false}, 10: {true, false}, 11: {false, true}} {
		o := wake.Occurrence{Seq: seq, App: "a", Topics: []string{"t"}, At: at}
		if got := [2]bool{replay.Of(s).Takes(o), s.Takes(o)}; got != want {
			t.Errorf("place %d: taken by replay and subscription %v, want %v", seq, got, want)
		}
	}
	if replay.Finished() {
		t.Error("finished before it began")
	}
	if replay.After = 10; !replay.Finished() {
		t.Error("not finished at its end")
	}
}

func TestCouldBeID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"sub_abcdefghij234567": true, "A-z_0": true, strings.Repeat("a", 100): true,
		"": false, strings.Repeat("a", 101): false, "a b": false, "../a": false, "a\x00": false, "\xff": false, "ü": false,
	} {
		if got := wake.CouldBeID(id); got != want {
			t.Errorf("%q: %v", id, got)
		}
	}
}
