package core_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/wake"
)

func TestAConversationIsToldWhatItMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(o *core.Options) { o.Retention = time.Hour })
		behind := b.subscribe(claude, "j1")
		reached := b.subscribe(wake.Call{Client: "claude-code", User: "bob"}, "j1")
		elsewhere := b.subscribe(wake.Call{Client: "claude-code", User: "cy"}, "j2")
		call := wake.Call{Client: "claude-code", User: "dee"}
		filtered, err := b.core.SubscribeEvent(t.Context(), b.app, call, "crawl.finished", json.RawMessage(`{"job":"j1","level":"deep"}`), false)
		if err != nil {
			t.Fatal(err)
		}
		b.emit("j1", "1")
		b.emit("j1", "2")
		b.deliver(reached)
		time.Sleep(62 * time.Minute)
		b.emit("j1", "3")
		want := []string{harness.MissedText(), "j1 has 3"}
		if diff := cmp.Diff(want, b.read(b.inbox(behind))); diff != "" {
			t.Error(diff)
		}
		for name, done := range map[string]core.Subscribed{"one that had it": reached, "one on another topic": elsewhere, "one with a filter": filtered} {
			for _, text := range b.read(b.inbox(done)) {
				if text == harness.MissedText() {
					t.Errorf("%s is told that it missed something", name)
				}
			}
		}
		// It is told once a day, however many it misses.
		for range 4 {
			b.emit("j1", "4")
			time.Sleep(30 * time.Minute)
		}
		told := strings.Count(fmt.Sprint(b.read(b.inbox(behind))), harness.MissedText())
		if told > 2 {
			t.Errorf("told %d times", told)
		}
	})
}

// A cursor from before what is kept is truncated, whatever made it so.
func TestTheOldestGoWhenTheDatabaseIsTooLarge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 4 << 20
		b := setup(t, func(o *core.Options) { o.RetentionSize = most })
		cursor := func() string {
			polled, err := b.core.Poll(t.Context(), b.app, siteRequest(native), core.Poll{})
			if err != nil {
				t.Fatal(err)
			}
			return polled.Cursor
		}
		first := cursor()
		batch := make([]core.Emit, 800)
		for i := range batch {
			batch[i] = core.Emit{Name: "site.updated", Arguments: json.RawMessage(`{"site":"s"}`),
				Payload: json.RawMessage(`{"pages":1}`), Text: strings.Repeat("t", 10_000)}
		}
		if _, err := b.core.EmitBatch(t.Context(), b.app, batch); err != nil {
			t.Fatal(err)
		}
		size := func() int64 {
			bytes, err := b.store.Size(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return bytes
		}
		time.Sleep(5 * time.Minute)
		if size() <= most {
			t.Fatalf("%d bytes: what is young has gone", size())
		}
		time.Sleep(10 * time.Minute)
		if size() > most || size() < most/2 {
			t.Errorf("%d bytes, with %d allowed", size(), most)
		}
		polled, err := b.core.Poll(t.Context(), b.app, siteRequest(native), core.Poll{Cursor: &first, MaxEvents: 500})
		if err != nil || !polled.Truncated || len(polled.Events) == 0 {
			t.Errorf("truncated %v, with %d events, %v", polled.Truncated, len(polled.Events), err)
		}
	})
}
