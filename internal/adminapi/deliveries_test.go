package adminapi_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/adminapi"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// hooked makes a webhook to crawl.finished {job: j1} whose deliveries wait, and emits that event once, which is its answer.
func (b *testBundle) hooked(app wake.App) adminapi.Emitted {
	b.t.Helper()
	hook := wake.Webhook{ID: "sub_hook", App: app.ID, Principal: "user/ada", User: "ada", URL: "https://Hooks.example.com:8443/secret?key=secret",
		Event: "crawl.finished", Topic: "ev/crawl.finished/j1", Suspended: true}
	if err := b.store.Update(b.t.Context(), func(tx store.Tx) error { return tx.PutWebhook(hook) }); err != nil {
		b.t.Fatal(err)
	}
	done, err := b.client.Emit(b.t.Context(), app.ID, adminapi.Emit{Name: "crawl.finished", Arguments: json.RawMessage(`{"job":"j1"}`), Payload: json.RawMessage(`{}`)})
	if err != nil {
		b.t.Fatal(err)
	}
	return done
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.newApp("crawler")
	emitted := b.hooked(app)
	at := time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)
	if err := b.store.Update(t.Context(), func(tx store.Tx) error {
		for _, a := range []wake.Attempt{
			{Webhook: "sub_hook", Seq: 1, Number: 1, At: at, Took: 1500 * time.Microsecond, Status: 503, Reason: "http_5xx", Outcome: wake.AttemptRetrying, NextAt: at.Add(time.Minute)},
			{Webhook: "sub_hook", Seq: 1, Number: 2, At: at.Add(time.Minute), Status: 200, Outcome: wake.AttemptDelivered},
			{Webhook: "sub_hook", Seq: 1, Kind: wake.DeliveryGap, Number: 1, At: at.Add(time.Hour), Reason: "timeout", Outcome: wake.AttemptAbandoned},
		} {
			if err := tx.RecordAttempt(a); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	common := adminapi.Delivery{Webhook: "sub_hook", Event: "crawl.finished", Host: "hooks.example.com:8443"}
	first, second, notice := common, common, common
	first.ID, first.At, first.EventID, first.Try, first.Status, first.Category = "dlv_1", at, emitted.ID, 1, 503, "http_5xx"
	first.TookMS, first.Outcome, first.NextAt = 1, "retrying", at.Add(time.Minute)
	second.ID, second.At, second.EventID, second.Try, second.Status, second.Outcome = "dlv_2", at.Add(time.Minute), emitted.ID, 2, 200, "delivered"
	notice.ID, notice.At, notice.Notice, notice.Try, notice.Category, notice.Outcome = "dlv_3", at.Add(time.Hour), "gap", 1, "timeout", "abandoned"
	type deliveries = []adminapi.Delivery
	for name, test := range map[string]struct {
		ask  adminapi.DeliveryList
		want deliveries
	}{
		"all":          {adminapi.DeliveryList{}, deliveries{notice, second, first}},
		"a page":       {adminapi.DeliveryList{Limit: 1, Before: "dlv_3"}, deliveries{second}},
		"failed":       {adminapi.DeliveryList{Failed: true}, deliveries{notice, first}},
		"of a webhook": {adminapi.DeliveryList{Webhook: "sub_hook", Limit: 1}, deliveries{notice}},
		"of an event":  {adminapi.DeliveryList{Event: emitted.ID}, deliveries{second, first}},
	} {
		got, err := b.client.Deliveries(t.Context(), "crawler", test.ask)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for name, ask := range map[string]adminapi.DeliveryList{"too many": {Limit: adminapi.MaxDeliveries + 1}, "fewer than none": {Limit: -1}, "before": {Before: "x&limit=1"}} {
		if _, err := b.client.Deliveries(t.Context(), "crawler", ask); !refusal.Is(err, refusal.BadRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.client.Deliveries(t.Context(), "nobody", adminapi.DeliveryList{}); !refusal.Is(err, refusal.UnknownApp) {
		t.Errorf("of no app: %v", err)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.newApp("crawler")
	emitted := b.hooked(app)
	if err := b.store.Update(t.Context(), func(tx store.Tx) error {
		return tx.RecordAttempt(wake.Attempt{Webhook: "sub_hook", Seq: 1, Number: 1, At: time.Now(), Outcome: wake.AttemptDelivered})
	}); err != nil {
		t.Fatal(err)
	}
	for name, what := range map[string]adminapi.Replay{
		"a delivery": {Delivery: "dlv_1"},
		"an event":   {Webhook: "sub_hook", Event: emitted.ID},
		"from":       {Webhook: "sub_hook", From: emitted.ID},
		"from, to":   {Webhook: "sub_hook", From: emitted.ID, To: emitted.ID},
		"since":      {Webhook: "sub_hook", Since: time.Now().Add(-time.Hour)},
	} {
		for range 2 {
			done, err := b.client.Replay(t.Context(), "crawler", what)
			if diff := cmp.Diff(adminapi.Replayed{Queued: 1, Suspended: true}, done); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
			}
		}
	}
	for name, what := range map[string]adminapi.Replay{"nothing": {Webhook: "sub_hook"}, "no delivery": {Delivery: "dlv_9"}} {
		if _, err := b.client.Replay(t.Context(), "crawler", what); !refusal.Is(err, refusal.BadRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.client.Replay(t.Context(), "crawler", adminapi.Replay{Webhook: "sub_none", Event: emitted.ID}); !refusal.Is(err, refusal.UnknownSubscription) {
		t.Errorf("no webhook: %v", err)
	}
}

// More than one replay queues says from where to go on.
func TestReplayOfMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.newApp("crawler")
	emitted := b.hooked(app)
	if err := b.store.Update(t.Context(), func(tx store.Tx) error {
		for range 5500 {
			o := wake.Occurrence{App: app.ID, Kind: wake.KindEvent, Event: "crawl.finished", Topics: []string{"ev/crawl.finished/j1"}, At: time.Now()}
			if _, err := tx.Append(o); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	first, err := b.client.Replay(t.Context(), "crawler", adminapi.Replay{Webhook: "sub_hook", From: emitted.ID})
	if err != nil || first.Queued != 5000 || !first.More || first.Next == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	rest, err := b.client.Replay(t.Context(), "crawler", adminapi.Replay{Webhook: "sub_hook", From: first.Next})
	if diff := cmp.Diff(adminapi.Replayed{Queued: 501, Suspended: true}, rest); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
