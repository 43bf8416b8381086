package storetest

import (
	"encoding/json"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func testWebhooks(s *suite) {
	app := s.addApp()
	full := wake.Webhook{
		ID: "full", App: app.ID, Principal: "voucher:1", User: "ada", URL: "https://example.com/a?b=%20", Event: "a",
		Arguments: []byte(`{"n":1.0}`), Topic: "ev/a/1", Filter: wake.Filter{"a": json.RawMessage(`"<&>"`)}, Dialect: "chatgpt",
		From: 3, CreatedAt: start, ExpiresAt: start.Add(time.Hour), Secret: []byte{0, 1}, Former: []byte{2, 0},
		FormerUntil: start.Add(time.Minute), Host: "example.com:443", VerifiedAt: start.Add(time.Second), Suspended: true,
		SuspendedAt: start.Add(2 * time.Second),
	}
	bare := wake.Webhook{ID: "bare", App: app.ID, Topic: "ev/b"}
	s.change(func(t store.Tx) error {
		return do(
			func() error { return t.PutWebhook(full) },
			func() error { return t.PutWebhook(bare) },
		)
	}, func(r store.Reader) {
		s.same("with everything", full, got[wake.Webhook](s)(r.Webhook("full")))
		s.same("with nothing", bare, got[wake.Webhook](s)(r.Webhook("bare")))
		s.is("none", store.ErrNotFound, fails(r.Webhook("other")))
	})

	replaced := bare
	replaced.ID = "full"
	s.change(func(t store.Tx) error { return t.PutWebhook(replaced) }, func(r store.Reader) {
		s.same("replaced", replaced, got[wake.Webhook](s)(r.Webhook("full")))
		s.same("all, in the order of creation", []wake.Webhook{replaced, bare}, got[[]wake.Webhook](s)(r.WebhooksOfApp(app.ID)))
	})
	s.change(func(t store.Tx) error {
		s.same("was there", true, got[bool](s)(t.DeleteWebhook("full")))
		s.same("again", false, got[bool](s)(t.DeleteWebhook("full")))
		return nil
	}, func(r store.Reader) {
		s.is("deleted", store.ErrNotFound, fails(r.Webhook("full")))
		s.same("all", []wake.Webhook{bare}, got[[]wake.Webhook](s)(r.WebhooksOfApp(app.ID)))
	})
}

func testWebhookLists(s *suite) {
	app, other := s.addApp(), s.addApp()
	type webhooks = []wake.Webhook
	to := func(r store.Reader, topics ...string) webhooks { return got[webhooks](s)(r.WebhooksTo(app.ID, topics)) }
	s.check(func(r store.Reader) { s.same("to a topic without any", webhooks{}, to(r, "one")) })
	first := s.addWebhook(app.ID, "one")
	second := s.addWebhook(app.ID, "two")
	third := s.addWebhook(app.ID, "one")
	elsewhere := s.addWebhook(other.ID, "one")
	s.check(func(r store.Reader) {
		s.same("to one topic", webhooks{first, third}, to(r, "one"))
		s.same("to both", webhooks{first, second, third}, to(r, "two", "one", "none", "two"))
		s.same("of the user", webhooks{first, second, third}, got[webhooks](s)(r.WebhooksOfUser(app.ID, "ada")))
		s.same("of another", webhooks{}, got[webhooks](s)(r.WebhooksOfUser(app.ID, "bob")))
		s.same("of the event", webhooks{first, second, third}, got[webhooks](s)(r.WebhooksOfEvent(app.ID, "crawl.finished")))
		s.same("of another", webhooks{}, got[webhooks](s)(r.WebhooksOfEvent(app.ID, "crawl")))
		s.same("of the other app", webhooks{elsewhere}, got[webhooks](s)(r.WebhooksOfApp(other.ID)))
	})

	moved := first
	moved.Topic, moved.Suspended, moved.ExpiresAt = "two", true, start.Add(-time.Hour)
	s.change(func(t store.Tx) error { return t.PutWebhook(moved) }, func(r store.Reader) {
		s.same("to the topic it left", webhooks{third}, to(r, "one"))
		s.same("to the topic it came to, expired", webhooks{moved, second}, to(r, "two"))
	})
	s.change(func(t store.Tx) error { return fails(t.DeleteWebhook(moved.ID)) }, func(r store.Reader) {
		s.same("without the deleted one", webhooks{second}, to(r, "two"))
	})
}

// queue adds deliveries of the webhook, due one minute after the other from the start, and returns them.
func (s *suite) queue(w wake.Webhook, n int) []wake.Delivery {
	s.Helper()
	var queued []wake.Delivery
	for i := range n {
		o := s.append(occurrence(w.App, w.Topic))
		queued = append(queued, wake.Delivery{Webhook: w.ID, Seq: o.Seq, NextAt: start.Add(time.Duration(i) * time.Minute)})
	}
	s.update(func(t store.Tx) error {
		for _, d := range queued {
			if err := t.QueueDelivery(d); err != nil {
				return err
			}
		}
		return nil
	})
	return queued
}

// claim takes deliveries with a lease of half an hour, and leaves their watermarks out.
func (s *suite) claim(now time.Time, limit, perWebhook int) []wake.Delivery {
	s.Helper()
	claimed := s.take(store.ClaimQuery{Now: now, Limit: limit, PerWebhook: perWebhook})
	for i := range claimed {
		claimed[i].Watermark = 0
	}
	return claimed
}

// take takes deliveries with a lease of half an hour.
func (s *suite) take(q store.ClaimQuery) []wake.Delivery {
	s.Helper()
	q.Lease = q.Now.Add(30 * time.Minute)
	var claimed []wake.Delivery
	s.update(func(t store.Tx) error {
		claimed = got[[]wake.Delivery](s)(t.ClaimDeliveries(q))
		return nil
	})
	return claimed
}

// leased gives the deliveries as a claim at that time returns them.
func leased(now time.Time, deliveries ...wake.Delivery) []wake.Delivery {
	var out []wake.Delivery
	for _, d := range deliveries {
		d.NextAt = now.Add(30 * time.Minute)
		d.Claim++
		out = append(out, d)
	}
	return out
}

// due checks when the next delivery is due.
func (s *suite) due(what string, want time.Time) {
	s.Helper()
	s.check(func(r store.Reader) { s.same("next delivery: "+what, want, got[time.Time](s)(r.NextDelivery(nil))) })
}

// held wants a delivery's claim to have held, lapsed wants the contrary.
func (s *suite) held(held bool, err error) error {
	s.Helper()
	s.same("the claim held", true, held)
	return err
}

func (s *suite) lapsed(held bool, err error) error {
	s.Helper()
	s.same("the claim held", false, held)
	return err
}

func testDeliveries(s *suite) {
	w := s.addWebhook(s.addApp().ID, "topic")
	s.due("none", time.Time{})
	queued := s.queue(w, 2)
	s.due("the first", queued[0].NextAt)

	again := queued[0]
	again.NextAt, again.Attempts = start.Add(-time.Hour), 5
	s.update(func(t store.Tx) error { return t.QueueDelivery(again) })
	s.due("the first, not changed by queueing it again", queued[0].NextAt)

	retried := queued[0]
	retried.Attempts, retried.NextAt, retried.Error = 1, start.Add(time.Hour), "timeout"
	s.update(func(t store.Tx) error { return s.held(t.RetryDelivery(retried)) })
	s.due("the second, with the first put off", queued[1].NextAt)
	s.update(func(t store.Tx) error { return s.held(t.FinishDelivery(queued[1])) })
	s.due("the first again", retried.NextAt)
	claimed := s.claim(retried.NextAt, 10, 10)
	s.same("claimed with its attempts and error", leased(retried.NextAt, retried), claimed)

	s.update(func(t store.Tx) error {
		return do(
			func() error { return s.held(t.FinishDelivery(claimed[0])) },
			func() error { return s.lapsed(t.FinishDelivery(claimed[0])) },
			func() error { return s.lapsed(t.RetryDelivery(claimed[0])) },
			func() error { return s.lapsed(t.FinishDelivery(wake.Delivery{Webhook: "none", Seq: 1})) },
		)
	})
	s.due("none is left, and none comes back", time.Time{})

	s.queue(w, 3)
	s.update(func(t store.Tx) error { return fails(t.DeleteWebhook(w.ID)) })
	s.due("none without the webhook", time.Time{})
	s.same("claimed without the webhook", []wake.Delivery{}, s.claim(start.Add(24*time.Hour), 10, 10))
}

func testClaims(s *suite) {
	w := s.addWebhook(s.addApp().ID, "topic")
	queued := s.queue(w, 3)
	s.same("before any is due", []wake.Delivery{}, s.claim(start.Add(-time.Microsecond), 10, 10))

	first := start.Add(time.Minute)
	s.same("those that are due", leased(first, queued[0], queued[1]), s.claim(first, 10, 10))
	s.due("the one not claimed", queued[2].NextAt)
	s.same("none twice", []wake.Delivery{}, s.claim(first, 10, 10))

	second := start.Add(2 * time.Minute)
	s.same("the next", leased(second, queued[2]), s.claim(second, 10, 10))
	s.due("when the first claim lapses", first.Add(30*time.Minute))
	s.update(func(t store.Tx) error { return s.held(t.FinishDelivery(leased(first, queued[0])[0])) })
	lapsed := first.Add(30 * time.Minute)
	s.same("the lapsed one that was not finished", leased(lapsed, leased(first, queued[1])...), s.claim(lapsed, 10, 10))
	s.reopen()
	s.due("after a restart", second.Add(30*time.Minute))
}

// Whoever slept through its lease does not undo what the one that took over does.
func testClaimFences(s *suite) {
	w := s.addWebhook(s.addApp().ID, "topic")
	queued := s.queue(w, 1)
	first := s.claim(start, 10, 10)[0]
	second := s.claim(first.NextAt, 10, 10)[0]
	late, retried := first, second
	late.Attempts, late.NextAt, late.Error = 1, start, "timeout"
	retried.Attempts, retried.NextAt, retried.Error = 1, second.NextAt.Add(time.Hour), "http_5xx"
	s.update(func(t store.Tx) error {
		return do(
			func() error { return s.lapsed(t.RetryDelivery(late)) },
			func() error { return s.lapsed(t.FinishDelivery(first)) },
			func() error { return s.lapsed(t.FinishDelivery(queued[0])) },
			func() error { return s.held(t.RetryDelivery(retried)) },
			func() error { return s.lapsed(t.FinishDelivery(first)) },
		)
	})
	s.reopen()
	s.due("as the second claim left it", retried.NextAt)
	s.update(func(t store.Tx) error { return s.lapsed(t.FinishDelivery(first)) })
	third := s.claim(retried.NextAt, 10, 10)
	s.same("claimed a third time", leased(retried.NextAt, retried), third)
	s.update(func(t store.Tx) error { return s.held(t.FinishDelivery(third[0])) })
	s.due("none is left", time.Time{})
}

func testClaimLimits(s *suite) {
	app := s.addApp()
	slow := s.addWebhook(app.ID, "busy")
	busy := s.queue(slow, 5)                           // due at minutes 0 to 4
	idle := s.queue(s.addWebhook(app.ID, "idle"), 2)   // due at minutes 0 and 1
	third := s.queue(s.addWebhook(app.ID, "third"), 3) // due at minutes 0 to 2
	now := start.Add(time.Hour)

	s.same("at most none", []wake.Delivery{}, s.claim(now, 0, 10))
	first := s.claim(now, 4, 2)
	s.same("two of each, earliest first", leased(now, busy[0], idle[0], third[0], busy[1]), first)
	s.due("those of webhooks that have room", start.Add(time.Minute))
	second := s.claim(now, 10, 2)
	s.same("the rest, two of each together", leased(now, idle[1], third[1]), second)
	s.same("none of the full ones", []wake.Delivery{}, s.claim(now, 10, 2))
	s.due("when the first of the claims lapses", now.Add(30*time.Minute))
	s.sound() // a queue behind claims is no damage

	s.queue(slow, 1)
	s.same("none of a full one that something is added to", []wake.Delivery{}, s.claim(now, 10, 2))
	s.due("again when the first of the claims lapses", now.Add(30*time.Minute))
	retried := first[3]
	retried.NextAt = now.Add(time.Hour)
	s.update(func(t store.Tx) error {
		return do(
			func() error { return s.held(t.FinishDelivery(first[0])) },
			func() error { return s.held(t.RetryDelivery(retried)) },
			func() error { return s.held(t.FinishDelivery(second[1])) },
		)
	})
	s.due("those of webhooks that have room again", start)
	s.same("as many as ended", 3, len(s.claim(now, 10, 2)))
}

func testClaimsSuspended(s *suite) {
	app := s.addApp()
	w := s.addWebhook(app.ID, "topic")
	other := s.addWebhook(app.ID, "other")
	queued := s.queue(w, 1)
	others := s.queue(other, 2)[1:]
	s.update(func(t store.Tx) error {
		return s.held(t.FinishDelivery(wake.Delivery{Webhook: other.ID, Seq: others[0].Seq - 1}))
	})

	suspended := w
	suspended.Suspended = true
	s.update(func(t store.Tx) error { return t.PutWebhook(suspended) })
	s.due("the other's", others[0].NextAt)
	now := start.Add(time.Hour)
	s.same("the other's only", leased(now, others...), s.claim(now, 10, 10))

	s.update(func(t store.Tx) error { return t.PutWebhook(w) })
	s.due("its own again", queued[0].NextAt)
	s.same("its own, none lost", leased(now, queued...), s.claim(now, 10, 10))
}
