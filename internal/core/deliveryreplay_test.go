package core_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// place is where an occurrence is that the core answered an emit with.
func (b *bench) place(id string) (seq wake.Seq) {
	b.Helper()
	if err := b.store.View(b.Context(), func(r store.Reader) error {
		log, err := r.Log()
		seq, _ = wake.ParseOccurrenceID(log.Epoch, id)
		return err
	}); err != nil || seq == 0 {
		b.Fatalf("no place of %q: %v", id, err)
	}
	return seq
}

// replay replays for the app and returns what became of it, without where it ended.
func (b *bench) replay(q core.ReplayQuery) core.ReplayedDeliveries {
	b.Helper()
	q.App = b.app.ID
	done, err := b.core.ReplayDeliveries(b.Context(), q)
	if err != nil {
		b.Fatal(err)
	}
	done.Through = 0
	return done
}

// received are the ids of events that the endpoint got so far.
func (b *bench) received() (ids []string) {
	b.Helper()
	for _, sent := range b.hooks.deliveries() {
		var body struct{ EventID string }
		if err := json.Unmarshal([]byte(sent.Body), &body); err != nil {
			b.Fatal(err)
		}
		ids = append(ids, body.EventID)
	}
	return ids
}

func TestReplayOfOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		w := b.hooked(hook).ID
		first := b.site("s", "1")
		time.Sleep(time.Minute) // else they are sent at once, in either order
		second := b.site("s", "2")
		time.Sleep(time.Minute)
		one := b.place(first.ID)
		for range 3 { // delivered, and asked for again and again
			if diff := cmp.Diff(core.ReplayedDeliveries{Queued: 1}, b.replay(core.ReplayQuery{Webhook: w, From: one, To: one})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			time.Sleep(time.Minute)
		}
		if diff := cmp.Diff([]string{first.ID, second.ID, first.ID, first.ID, first.ID}, b.received()); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
		sent := b.hooks.deliveries()
		if sent[2].ID != sent[0].ID {
			t.Errorf("its id is %s, want that of the first time, %s", sent[2].ID, sent[0].ID)
		}
	})
}

func TestReplayOfWhatIsQueued(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		w := b.hooked(hook).ID
		b.hooks.fail(core.HookResult{Retry: true, Reason: "http_5xx"}, core.HookResult{Reason: "http_4xx"})
		done := b.site("s", "1")
		time.Sleep(time.Second)
		seq := b.place(done.ID)
		for range 2 { // once while it waits for its next attempt, once after it was given up
			b.replay(core.ReplayQuery{Webhook: w, From: seq, To: seq})
			time.Sleep(time.Minute)
		}
		time.Sleep(24 * time.Hour)
		if n := len(b.hooks.deliveries()); n != 3 {
			t.Errorf("%d attempts, want the first one and one for each replay", n)
		}
	})
}

func TestReplayOfAStretch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		early := []core.Emitted{b.site("s", "1"), b.site("other", "1"), b.site("s", "2")}
		b.emit("s", "3") // another event
		time.Sleep(time.Hour)
		w := b.hooked(hook).ID
		since := time.Now()
		late := b.site("s", "4")
		time.Sleep(time.Minute)
		for what, test := range map[string]struct {
			ask  core.ReplayQuery
			want []string
		}{
			"from before it was subscribed": {core.ReplayQuery{From: b.place(early[0].ID)}, []string{early[0].ID, early[2].ID, late.ID}},
			"up to one of another site":     {core.ReplayQuery{From: b.place(early[0].ID), To: b.place(early[1].ID)}, []string{early[0].ID}},
			"one of another site":           {core.ReplayQuery{From: b.place(early[1].ID), To: b.place(early[1].ID)}, nil},
			"since":                         {core.ReplayQuery{Since: since}, []string{late.ID}},
			"since the first, from later":   {core.ReplayQuery{Since: since.Add(-2 * time.Hour), From: b.place(early[2].ID)}, []string{early[2].ID, late.ID}},
			"since later":                   {core.ReplayQuery{Since: since.Add(time.Hour)}, nil},
			"beyond the end":                {core.ReplayQuery{From: 1000}, nil},
		} {
			before := len(b.received())
			test.ask.Webhook = w
			if done := b.replay(test.ask); done.Queued != len(test.want) || done.Gone != 0 || done.Truncated || done.More {
				t.Errorf("%s: %+v, want %d queued", what, done, len(test.want))
			}
			time.Sleep(time.Minute)
			got := b.received()[before:]
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got, cmp.Transformer("list", func(l []string) []string { return append([]string{}, l...) })); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
	})
}

func TestReplayOfWhatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		code := core.Native{Call: native, Name: "code.sent", Arguments: json.RawMessage(`{"job":"j1"}`)}
		granted, err := b.core.SubscribeWebhook(t.Context(), b.app, code, hook)
		if err != nil {
			t.Fatal(err)
		}
		w := granted.ID
		done, err := b.core.Emit(t.Context(), b.app, core.Emit{Name: "code.sent", Arguments: args("j1"), Payload: json.RawMessage(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		seq := b.place(done.ID)
		for what, test := range map[string]struct {
			ask  core.ReplayQuery
			want core.ReplayedDeliveries
		}{
			"erased":           {core.ReplayQuery{From: seq, To: seq}, core.ReplayedDeliveries{Gone: 1}},
			"erased, with all": {core.ReplayQuery{From: 1}, core.ReplayedDeliveries{Gone: 1}},
		} {
			test.ask.Webhook = w
			if diff := cmp.Diff(test.want, b.replay(test.ask)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		b.site("s", "1") // so that the log goes on
		for removed := 1; removed > 0; {
			if err := b.store.Update(t.Context(), func(tx store.Tx) (err error) {
				removed, err = tx.PruneLog(time.Now().Add(-time.Second), 100)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		for what, test := range map[string]struct {
			ask  core.ReplayQuery
			want core.ReplayedDeliveries
		}{
			"pruned":           {core.ReplayQuery{From: seq, To: seq}, core.ReplayedDeliveries{Gone: 1}},
			"pruned, with all": {core.ReplayQuery{From: 1}, core.ReplayedDeliveries{Truncated: true}},
		} {
			test.ask.Webhook = w
			if diff := cmp.Diff(test.want, b.replay(test.ask)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
	})
}

// A replay ends somewhere, and says where: whoever wants more goes on from there.
func TestReplayOfVeryMany(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.hooked(hook).ID
	const all = 6000
	if err := b.store.Update(t.Context(), func(tx store.Tx) error {
		suspended, err := tx.Webhook(w)
		if err != nil {
			return err
		}
		suspended.Suspended = true
		if err := tx.PutWebhook(suspended); err != nil {
			return err
		}
		for i := range all {
			o := wake.Occurrence{App: b.app.ID, Kind: wake.KindEvent, Event: "site.updated", Topics: []string{suspended.Topic}, At: time.Now(), Key: fmt.Sprint(i)}
			if _, err := tx.Append(o); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	q := core.ReplayQuery{App: b.app.ID, Webhook: w, From: 1}
	done, err := b.core.ReplayDeliveries(t.Context(), q)
	if want := (core.ReplayedDeliveries{Queued: 5000, Suspended: true, More: true, Through: 5000}); err != nil || done != want {
		t.Fatalf("%+v, %v; want %+v", done, err, want)
	}
	q.From = done.Through + 1
	done, err = b.core.ReplayDeliveries(t.Context(), q)
	if want := (core.ReplayedDeliveries{Queued: all - 5000, Suspended: true, Through: all}); err != nil || done != want {
		t.Fatalf("%+v, %v; want %+v", done, err, want)
	}
	if err := b.store.View(t.Context(), func(r store.Reader) error {
		if over, err := r.Overfull(all-1, 10); err != nil || len(over) != 1 {
			t.Errorf("overfull are %v, %v: not all are queued", over, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestReplayRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.newApp("other")
	w := b.hooked(hook).ID
	for what, test := range map[string]struct {
		ask  core.ReplayQuery
		want refusal.Code
	}{
		"no webhook":            {core.ReplayQuery{App: b.app.ID, Webhook: "sub_none", From: 1}, refusal.UnknownSubscription},
		"no id at all":          {core.ReplayQuery{App: b.app.ID, Webhook: "\x00", From: 1}, refusal.UnknownSubscription},
		"another app's webhook": {core.ReplayQuery{App: "other", Webhook: w, From: 1}, refusal.UnknownSubscription},
		"nothing":               {core.ReplayQuery{App: b.app.ID, Webhook: w}, refusal.BadRequest},
		"backwards":             {core.ReplayQuery{App: b.app.ID, Webhook: w, From: 2, To: 1}, refusal.BadRequest},
	} {
		if _, err := b.core.ReplayDeliveries(t.Context(), test.ask); !refusal.Is(err, test.want) {
			t.Errorf("%s: %v, want %s", what, err, test.want)
		}
	}
	if err := b.store.Update(t.Context(), func(tx store.Tx) error {
		_, err := tx.EndWebhook(w, "forbidden", time.Now())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	_, err := b.core.ReplayDeliveries(t.Context(), core.ReplayQuery{App: b.app.ID, Webhook: w, From: 1})
	b.refused(err, refusal.UnknownSubscription)
}
