package core_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// attempted keeps attempts as if they had been made, and returns the ids of their deliveries.
func (b *bench) attempted(attempts ...wake.Attempt) (ids []string) {
	b.Helper()
	for _, a := range attempts {
		if err := b.store.Update(b.Context(), func(tx store.Tx) error { return tx.RecordAttempt(a) }); err != nil {
			b.Fatal(err)
		}
		newest, err := b.core.Attempts(b.Context(), core.AttemptList{App: b.app.ID, Limit: 1})
		if err != nil || len(newest) != 1 {
			b.Fatalf("%+v, %v", newest, err)
		}
		ids = append(ids, newest[0].ID)
	}
	return ids
}

func TestReplayByIDs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		w := b.hooked(hook).ID
		first := b.site("s", "1")
		time.Sleep(time.Hour)
		second, err := b.core.Emit(t.Context(), b.app, core.Emit{Name: "site.updated", Arguments: []byte(`{"site":"s"}`), Payload: []byte(`{"pages":2}`), ID: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		tried := b.attempted(wake.Attempt{Webhook: w, Seq: b.place(first.ID), Number: 1, At: time.Now(), Outcome: wake.AttemptDelivered})
		for _, test := range []struct {
			what   string
			choice core.ReplayChoice
			want   []string
		}{
			{"a delivery", core.ReplayChoice{Delivery: tried[0]}, []string{first.ID}},
			{"a delivery to that webhook", core.ReplayChoice{Delivery: tried[0], Webhook: w}, []string{first.ID}},
			{"an event", core.ReplayChoice{Webhook: w, Event: first.ID}, []string{first.ID}},
			{"an event by its app's id", core.ReplayChoice{Webhook: w, Event: "mine"}, []string{"mine"}},
			{"an event with such an id by this core's", core.ReplayChoice{Webhook: w, Event: second.ID}, []string{"mine"}},
			{"from one", core.ReplayChoice{Webhook: w, From: "mine"}, []string{"mine"}},
			{"from one to itself", core.ReplayChoice{Webhook: w, From: first.ID, To: first.ID}, []string{first.ID}},
			{"since", core.ReplayChoice{Webhook: w, Since: time.Now().Add(-10 * time.Minute)}, []string{"mine"}},
		} {
			for range 2 { // as often as it is asked for
				before := len(b.received())
				test.choice.App = b.app.ID
				done, err := b.core.Replay(t.Context(), test.choice)
				if err != nil || done.Queued != len(test.want) || done.Gone != 0 || done.More {
					t.Errorf("%s: %+v, %v; want %d queued", test.what, done, err, len(test.want))
				}
				time.Sleep(time.Minute)
				if diff := cmp.Diff(test.want, b.received()[before:]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", test.what, diff)
				}
			}
		}
	})
}

func TestReplayByIDsRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.newApp("other")
	w := b.hooked(hook).ID
	at := b.place(b.site("s", "1").ID)
	tried := b.attempted(wake.Attempt{Webhook: w, Seq: at, Kind: wake.DeliveryGap, Number: 1, Outcome: wake.AttemptDelivered},
		wake.Attempt{Webhook: w, Seq: at, Number: 1, Outcome: wake.AttemptDelivered})
	notice, event := tried[0], tried[1]
	app := b.app.ID
	for what, test := range map[string]struct {
		choice core.ReplayChoice
		want   refusal.Code
	}{
		"nothing":                   {core.ReplayChoice{App: app, Webhook: w}, refusal.BadRequest},
		"two things":                {core.ReplayChoice{App: app, Webhook: w, Delivery: event, Event: "evt_x"}, refusal.BadRequest},
		"an end only":               {core.ReplayChoice{App: app, Webhook: w, Since: time.Now(), To: "evt_x"}, refusal.BadRequest},
		"no webhook":                {core.ReplayChoice{App: app, Event: "evt_x"}, refusal.UnknownSubscription},
		"another app's webhook":     {core.ReplayChoice{App: "other", Webhook: w, Since: time.Now()}, refusal.UnknownSubscription},
		"no such event":             {core.ReplayChoice{App: app, Webhook: w, Event: "evt_none"}, refusal.BadRequest},
		"no event yet":              {core.ReplayChoice{App: app, Webhook: w, Event: b.core.OccurrenceAt(at + 100)}, refusal.BadRequest},
		"no id at all":              {core.ReplayChoice{App: app, Webhook: w, From: "\x00"}, refusal.BadRequest},
		"no such end":               {core.ReplayChoice{App: app, Webhook: w, From: b.core.OccurrenceAt(at), To: "evt_"}, refusal.BadRequest},
		"no such delivery":          {core.ReplayChoice{App: app, Delivery: "dlv_999"}, refusal.BadRequest},
		"no delivery at all":        {core.ReplayChoice{App: app, Delivery: "dlv_-1"}, refusal.BadRequest},
		"the largest number":        {core.ReplayChoice{App: app, Delivery: "dlv_9223372036854775807"}, refusal.BadRequest},
		"another app's delivery":    {core.ReplayChoice{App: "other", Delivery: event}, refusal.BadRequest},
		"a delivery to another one": {core.ReplayChoice{App: app, Webhook: "sub_other", Delivery: event}, refusal.BadRequest},
		"a notice":                  {core.ReplayChoice{App: app, Delivery: notice}, refusal.BadRequest},
	} {
		if _, err := b.core.Replay(t.Context(), test.choice); !refusal.Is(err, test.want) {
			t.Errorf("%s: %v, want %s", what, err, test.want)
		}
	}
}

func TestAttemptsAreListed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.hooked(hook).ID
	b.suspend(w, time.Now(), "") // so that there are no attempts but those written here
	voucher := wake.Webhook{ID: "sub_v", App: b.app.ID, Principal: wake.VoucherPrincipal("sub_conversation"), URL: "https://hook.test/v", Event: "site.updated"}
	if err := b.store.Update(t.Context(), func(tx store.Tx) error { return tx.PutWebhook(voucher) }); err != nil {
		t.Fatal(err)
	}
	own, err := b.core.Emit(t.Context(), b.app, core.Emit{Name: "site.updated", Arguments: []byte(`{"site":"s"}`), Payload: []byte(`{"pages":1}`), ID: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	at := b.place(own.ID)
	ids := b.attempted(
		wake.Attempt{Webhook: w, Seq: at, Number: 1, Outcome: wake.AttemptRetrying, Reason: "timeout"},
		wake.Attempt{Webhook: w, Seq: at, Kind: wake.DeliveryGap, Number: 1, Outcome: wake.AttemptDelivered, Status: 200},
		wake.Attempt{Webhook: voucher.ID, Seq: at, Number: 1, Outcome: wake.AttemptDelivered, Status: 200},
	)
	pick := func(places ...int) (list []string) {
		for _, i := range places {
			list = append(list, ids[i])
		}
		return list
	}
	for what, test := range map[string]struct {
		ask  core.AttemptList
		want []string
	}{
		"all":                         {core.AttemptList{Limit: 10}, pick(2, 1, 0)},
		"none":                        {core.AttemptList{}, nil},
		"the first page":              {core.AttemptList{Limit: 1}, pick(2)},
		"the next page":               {core.AttemptList{Limit: 1, Before: ids[2]}, pick(1)},
		"of a webhook":                {core.AttemptList{Limit: 10, Webhook: w}, pick(1, 0)},
		"of a subscription's voucher": {core.AttemptList{Limit: 10, Webhook: "sub_conversation"}, pick(2)},
		"of an event":                 {core.AttemptList{Limit: 10, Event: own.ID}, pick(2, 0)},
		"of an event by its own id":   {core.AttemptList{Limit: 10, Event: "mine", Webhook: w}, pick(0)},
		"failed":                      {core.AttemptList{Limit: 10, Failed: true}, pick(0)},
	} {
		test.ask.App = b.app.ID
		got, err := b.core.Attempts(t.Context(), test.ask)
		var listed []string
		for _, a := range got {
			listed = append(listed, a.ID)
		}
		if diff := cmp.Diff(test.want, listed); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
	got, err := b.core.Attempts(t.Context(), core.AttemptList{App: b.app.ID, Webhook: w, Limit: 10})
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if notice, event := got[0], got[1]; notice.Occurrence != "" || notice.Event != "site.updated" || notice.URL != hook.URL || event.Occurrence != own.ID {
		t.Errorf("%+v", got)
	}
}

func TestAttemptsThatAreNotListed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.newApp("other")
	w := b.hooked(hook).ID
	for what, test := range map[string]struct {
		ask  core.AttemptList
		want refusal.Code
	}{
		"no app":                 {core.AttemptList{App: "nobody"}, refusal.UnknownApp},
		"no webhook":             {core.AttemptList{App: b.app.ID, Webhook: "sub_none"}, refusal.UnknownSubscription},
		"no id at all":           {core.AttemptList{App: b.app.ID, Webhook: "\x00"}, refusal.UnknownSubscription},
		"another app's webhook":  {core.AttemptList{App: "other", Webhook: w}, refusal.UnknownSubscription},
		"an event's own id":      {core.AttemptList{App: b.app.ID, Event: "mine"}, refusal.BadRequest},
		"no event of the hook's": {core.AttemptList{App: b.app.ID, Webhook: w, Event: "mine"}, refusal.BadRequest},
		"no delivery":            {core.AttemptList{App: b.app.ID, Before: "12"}, refusal.BadRequest},
	} {
		if _, err := b.core.Attempts(t.Context(), test.ask); !refusal.Is(err, test.want) {
			t.Errorf("%s: %v, want %s", what, err, test.want)
		}
	}
}
