package core_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/wake"
)

func TestAnInboxReadsInOrderFromThePosition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit("j1", "0") // before anybody subscribed
	done := b.subscribe(claude, "j1")
	same := claude
	same.Session = done.Session
	b.subscribe(same, "j2")
	for i := range 8 {
		b.emit(fmt.Sprintf("j%d", 1+i%2), fmt.Sprint(i))
	}
	want := []string{"j1 has 0", "j2 has 1", "j1 has 2", "j2 has 3", "j1 has 4", "j2 has 5", "j1 has 6", "j2 has 7"}
	first := b.inbox(done)
	messages, err := first.Read(t.Context(), 3)
	if err != nil || len(messages) != 3 {
		t.Fatalf("%v, %v", messages, err)
	}
	if err := first.Settle(t.Context(), receipt(messages[:2]...)); err != nil {
		t.Fatal(err)
	}
	if got := b.read(first); !cmp.Equal(want[3:], got) {
		t.Errorf("went on with %q", got)
	}
	// What was not settled comes again, with its old id.
	again, err := b.inbox(done).Read(t.Context(), 100)
	if err != nil || len(again) != 6 || again[0].ID != messages[2].ID {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestAnInboxIsToldOfWhatIsNew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := b.subscribe(claude, "j1")
	in := b.inbox(done)
	b.read(in)
	changed := func() bool {
		select {
		case <-in.Changed():
			return true
		default:
			return false
		}
	}
	b.emit("j2", "1")
	if changed() {
		t.Error("told of somebody else's event")
	}
	b.emit("j1", "1")
	if !changed() {
		t.Error("not told of its own")
	}
	same := claude
	same.Session = done.Session
	b.subscribe(same, "j2")
	if !changed() {
		t.Error("not told of a further subscription")
	}
	b.read(in)
	b.emit("j2", "2")
	if !changed() {
		t.Error("not told of an event of the further subscription")
	}
}

func TestAnInboxIsFinishedWhenNothingIsLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done, err := b.core.SubscribeEvent(t.Context(), b.app, claude, "crawl.finished", args("j1"), true)
	if err != nil {
		t.Fatal(err)
	}
	in := b.inbox(done)
	if b.read(in); in.Finished() {
		t.Error("finished before the event")
	}
	b.emit("j1", "1")
	if done := b.emit("j1", "2"); done.Matched != 0 {
		t.Errorf("a once subscription matched a second time")
	}
	if got := b.read(in); !cmp.Equal(got, []string{"j1 has 1"}) || !in.Finished() {
		t.Errorf("got %q, finished %v", got, in.Finished())
	}
	// Until it is settled another reader gets it too.
	other := b.inbox(done)
	if got := b.read(other); len(got) != 1 {
		t.Errorf("another reader got %q", got)
	}
}

func TestUnsubscribingEndsWithoutAWord(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := b.subscribe(claude, "j1")
	in := b.inbox(done)
	call := claude
	call.Session = done.Session
	b.emit("j1", "1")
	for i, want := range []bool{true, false} {
		ended, err := b.core.UnsubscribeEvent(t.Context(), b.app, call, "crawl.finished", args("j1"))
		if err != nil || ended != want {
			t.Errorf("time %d: %v, %v", i+1, ended, err)
		}
	}
	if done := b.emit("j1", "2"); done.Matched != 0 {
		t.Error("it still matches")
	}
	if got := b.read(in); !cmp.Equal(got, []string{"j1 has 1"}) || !in.Finished() {
		t.Errorf("got %q, finished %v", got, in.Finished())
	}
}

func TestAManifestEndsWhatItNoLongerOffers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.inbox(b.subscribe(claude, "j1"))
	b.read(in)
	if _, err := b.core.PutManifest(t.Context(), b.app, json.RawMessage(`{"scope":"more"}`)); err != nil {
		t.Fatal(err)
	}
	if done := b.emit("j1", "1"); done.Matched != 1 {
		t.Fatal("a manifest that says nothing of events ended them")
	}
	b.read(in)
	if _, err := b.core.PutManifest(t.Context(), b.app, json.RawMessage(`{"events":[]}`)); err != nil {
		t.Fatal(err)
	}
	messages, err := in.Read(t.Context(), 10)
	if err != nil || len(messages) != 1 || messages[0].Kind != wake.KindEnded || !in.Finished() {
		t.Errorf("%+v, %v, finished %v", messages, err, in.Finished())
	}
	if _, err := b.core.PutManifest(t.Context(), b.app, json.RawMessage(manifest)); err != nil {
		t.Fatal(err)
	}
	if done := b.emit("j1", "2"); done.Matched != 0 {
		t.Error("adding the event again brought the subscription back")
	}
}

func TestCapabilitiesOfNobodyAreGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := b.subscribe(claude, "j1")
	token := streamToken(t, done.Addition.Text)
	for _, bad := range []string{"", "x", token[:len(token)-4] + "aaaa", done.Session} {
		if _, err := b.core.OpenStream(t.Context(), bad); !errors.Is(err, core.ErrGone) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	if _, err := b.core.OpenConnector(t.Context(), token); !errors.Is(err, core.ErrGone) {
		t.Errorf("a stream's token opens a connector: %v", err)
	}
	in := b.inbox(done)
	if err := b.core.DeleteApp(t.Context(), b.app.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Read(t.Context(), 1); !errors.Is(err, core.ErrGone) || !in.Finished() {
		t.Errorf("after the app was deleted: %v, finished %v", err, in.Finished())
	}
}

func TestOnlyTheNewestConnectorStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := b.subscribe(claude, "j1")
	token := streamToken(t, done.Addition.Text)
	var streams []*core.Inbox
	for range 5 {
		in, err := b.core.OpenStream(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		streams = append(streams, in)
	}
	for i, in := range streams {
		select {
		case <-in.Superseded():
			if i != 0 {
				t.Errorf("stream %d of 5 was superseded", i)
			}
		default:
			if i == 0 {
				t.Error("the oldest of five streams stays")
			}
		}
	}
}

func TestExpiryEndsAndTells(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		done, err := b.core.SubscribeTopic(t.Context(), b.app, claude, "t", core.TopicOptions{TTL: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		in := b.inbox(done)
		time.Sleep(10 * time.Second) // synctest's clock
		if done, err := b.core.Publish(t.Context(), b.app, core.Publish{Topics: []string{"t"}, Text: "late"}); err != nil || done.Matched != 0 {
			t.Errorf("an expired subscription matched: %+v, %v", done, err)
		}
		time.Sleep(time.Minute) // the sweep
		messages, err := in.Read(t.Context(), 10)
		if err != nil || len(messages) != 1 || messages[0].Kind != wake.KindEnded || !in.Finished() {
			t.Errorf("%+v, %v, finished %v", messages, err, in.Finished())
		}
	})
}

func TestRetentionRemovesWhatIsOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(o *core.Options) { o.Retention = time.Hour })
		b.emit("j1", "1")
		cursor := b.poll(nil).Cursor
		b.site("s", "1")
		time.Sleep(2 * time.Hour)
		b.site("s", "2")
		if err := b.core.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := b.poll(&cursor)
		if !got.Truncated || len(got.Events) != 1 || string(got.Events[0].Data) != `{"pages":2}` {
			t.Errorf("%+v", got)
		}
	})
}
