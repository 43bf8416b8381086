package storetest

import (
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// all claims whatever is due, of any webhook.
func (s *suite) all(now time.Time) []wake.Delivery {
	s.Helper()
	return s.take(store.ClaimQuery{Now: now, Limit: 1000, PerWebhook: 1000})
}

// Deliveries of one place and of several kinds do not know each other.
func testDeliveryKinds(s *suite) {
	w := s.addWebhook(s.addApp().ID, "topic")
	first := s.queue(w, 1)[0]
	gap, terminated := first, first
	gap.Kind, gap.NextAt = wake.DeliveryGap, start.Add(time.Minute)
	terminated.Kind, terminated.NextAt = wake.DeliveryTerminated, start.Add(2*time.Minute)
	s.update(func(t store.Tx) error {
		return do(
			func() error { return t.QueueDelivery(terminated) },
			func() error { return t.QueueDelivery(gap) },
			func() error { return t.QueueDelivery(gap) },
			func() error { return t.QueueDelivery(first) },
		)
	})
	now := start.Add(time.Hour)
	claimed := s.all(now)
	want := leased(now, first, gap, terminated)
	want[0].Watermark = first.Seq // notices have none
	s.same("one of each kind", want, claimed)
	s.update(func(t store.Tx) error {
		retried := claimed[1]
		retried.Attempts, retried.NextAt, retried.Error = 1, now.Add(time.Hour), "timeout"
		return do(
			func() error { return s.held(t.FinishDelivery(claimed[0])) },
			func() error { return s.held(t.RetryDelivery(retried)) },
			func() error { return s.held(t.FinishDelivery(claimed[2])) },
			func() error { return s.lapsed(t.FinishDelivery(claimed[0])) },
		)
	})
	s.due("the notice that is retried", now.Add(time.Hour))
	s.sound()
	s.reopen()
	later := s.all(now.Add(time.Hour))
	s.same("the retried notice", 1, len(later))
	s.same("its kind, attempts and claim", []any{wake.DeliveryGap, 1, int64(2)}, []any{later[0].Kind, later[0].Attempts, later[0].Claim})
}

// A notice at the place of something fleeting owes nobody its content, and releases nothing.
func testNoticesAndErasing(s *suite) {
	w := s.addWebhook(s.addApp().ID, "topic")
	other := s.addWebhook(w.App, "topic")
	o := s.owe("topic", nil, []wake.Webhook{w})
	gap := wake.Delivery{Webhook: w.ID, Seq: o.Seq, Kind: wake.DeliveryGap, NextAt: start}
	others := gap
	others.Webhook = other.ID
	s.update(func(t store.Tx) error {
		return do(
			func() error { return t.QueueDelivery(gap) },
			func() error { return t.QueueDelivery(others) },
			func() error { return s.held(t.FinishDelivery(gap)) },
		)
	})
	s.erased("when only the notice was delivered", o, false)
	s.update(func(t store.Tx) error { return s.held(t.FinishDelivery(wake.Delivery{Webhook: w.ID, Seq: o.Seq})) })
	s.erased("when the occurrence was, with another's notice waiting", o, true)
	s.sound()
}

func testWatermarks(s *suite) {
	w := s.addWebhook(s.addApp().ID, "topic")
	other := s.addWebhook(w.App, "topic")
	upTo := func(what string, want wake.Seq) {
		s.Helper()
		s.check(func(r store.Reader) { s.same("watermark "+what, want, got[wake.Seq](s)(r.Watermark(w.ID))) })
	}
	upTo("of an empty log", 0)
	s.append(occurrence(w.App, "elsewhere"))
	upTo("with nothing queued", 1)
	queued := s.queue(w, 4) // places 2 to 5, due a minute apart
	s.queue(other, 2)
	upTo("with a queue", 1)
	now := start.Add(2 * time.Minute)
	claimed := s.take(store.ClaimQuery{Now: now, Limit: 2, PerWebhook: 10})
	var third wake.Delivery
	for _, d := range claimed {
		if d.Webhook != w.ID {
			continue
		}
		s.same("of the lowest", d.Seq, d.Watermark)
		third = d
	}
	s.update(func(t store.Tx) error { return s.held(t.FinishDelivery(third)) })
	upTo("without the first", queued[1].Seq-1)

	// The rest is claimed at once: all but the lowest wait for it.
	claimed = nil
	for _, d := range s.all(start.Add(10 * time.Minute)) {
		if d.Webhook == w.ID {
			claimed = append(claimed, d)
		}
	}
	lowest := queued[1].Seq
	for i, want := range []wake.Seq{lowest, lowest - 1, lowest - 1} {
		s.same("watermark of a claimed one", want, claimed[i].Watermark)
	}
	s.update(func(t store.Tx) error {
		retried := claimed[2]
		retried.NextAt = start.Add(time.Hour)
		return do(
			func() error { return s.held(t.FinishDelivery(claimed[0])) },
			func() error { return s.held(t.FinishDelivery(claimed[1])) },
			func() error { return s.held(t.RetryDelivery(retried)) },
		)
	})
	s.reopen()
	upTo("with the last one to be retried", queued[3].Seq-1)
	for _, d := range s.all(start.Add(2 * time.Hour)) {
		if d.Webhook == w.ID {
			s.same("of the retried one, which it keeps", lowest-1, d.Watermark)
			s.update(func(t store.Tx) error { return s.held(t.FinishDelivery(d)) })
		}
	}
	s.check(func(r store.Reader) {
		s.same("watermark with nothing queued", got[store.Log](s)(r.Log()).Head, got[wake.Seq](s)(r.Watermark(w.ID)))
	})
	s.update(func(t store.Tx) error {
		gap := wake.Delivery{Webhook: w.ID, Seq: 1, Kind: wake.DeliveryGap, NextAt: start}
		return do(
			func() error { return t.QueueDelivery(gap) },
			func() error {
				seq := got[wake.Seq](s)(t.Append(occurrence(w.App, "topic")))
				s.same("of one not written yet, with a notice queued", seq, got[wake.Seq](s)(t.Watermark(w.ID)))
				return nil
			},
		)
	})
}

func testRequeue(s *suite) {
	w := s.addWebhook(s.addApp().ID, "topic")
	queued := s.queue(w, 3)
	now := start.Add(time.Hour)
	claimed := s.all(now)
	requeue := func(d wake.Delivery, at time.Time) {
		s.Helper()
		s.update(func(t store.Tx) error {
			return t.RequeueDelivery(wake.Delivery{Webhook: w.ID, Seq: d.Seq, NextAt: at, Attempts: 9, Error: "ignored"})
		})
	}
	retried := claimed[1]
	retried.Attempts, retried.NextAt, retried.Error = 3, now.Add(24*time.Hour), "timeout"
	s.update(func(t store.Tx) error {
		return do(
			func() error { return s.held(t.FinishDelivery(claimed[0])) },
			func() error { return s.held(t.RetryDelivery(retried)) },
		)
	})
	requeue(queued[0], now.Add(time.Minute))
	requeue(queued[1], now.Add(2*time.Minute))
	requeue(queued[2], now.Add(3*time.Minute)) // under way
	s.due("the one that was delivered", now.Add(time.Minute))
	s.update(func(t store.Tx) error { return s.held(t.FinishDelivery(claimed[2])) })
	again := s.all(now.Add(5 * time.Minute))
	s.same("two are made again", 2, len(again))
	for i, d := range again {
		s.same("place, attempts, error", []any{queued[i].Seq, 0, ""}, []any{d.Seq, d.Attempts, d.Error})
	}
	s.same("watermark as of the new claim", queued[0].Seq-1, again[1].Watermark)
	s.same("watermark of the lowest", queued[0].Seq, again[0].Watermark)

	lapsed := now.Add(5 * time.Minute).Add(30 * time.Minute)
	requeue(queued[0], lapsed) // nobody has it any more
	twice := s.all(lapsed)
	s.same("after its claim lapsed", 2, len(twice))
	for _, d := range twice {
		s.update(func(t store.Tx) error { return s.held(t.FinishDelivery(d)) })
	}

	suspended := w
	suspended.Suspended = true
	s.update(func(t store.Tx) error { return t.PutWebhook(suspended) })
	requeue(queued[0], lapsed)
	requeue(queued[0], lapsed.Add(time.Minute))
	s.due("none while it is suspended", time.Time{})
	s.update(func(t store.Tx) error { return t.PutWebhook(w) })
	s.due("as it was queued last", lapsed.Add(time.Minute))
	s.update(func(t store.Tx) error {
		s.is("without the webhook", store.ErrNotFound, t.RequeueDelivery(wake.Delivery{Webhook: "none", Seq: 1, NextAt: start}))
		return nil
	})
	s.sound()
}

// A fleeting occurrence that is queued again is owed again.
func testRequeueOwed(s *suite) {
	w := s.addWebhook(s.addApp().ID, "topic")
	other := s.addWebhook(w.App, "other")
	o := s.owe("topic", nil, []wake.Webhook{w, other})
	s.update(func(t store.Tx) error {
		return do(
			func() error { return s.held(t.FinishDelivery(wake.Delivery{Webhook: w.ID, Seq: o.Seq})) },
			func() error { return t.RequeueDelivery(wake.Delivery{Webhook: w.ID, Seq: o.Seq, NextAt: start}) },
			func() error { return s.held(t.FinishDelivery(wake.Delivery{Webhook: other.ID, Seq: o.Seq})) },
		)
	})
	s.erased("owed again", o, false)
	s.update(func(t store.Tx) error { return s.held(t.FinishDelivery(wake.Delivery{Webhook: w.ID, Seq: o.Seq})) })
	s.erased("delivered again", o, true)
	s.sound()
}

func testTrim(s *suite) {
	w := s.addWebhook(s.addApp().ID, "topic")
	other := s.addWebhook(w.App, "topic")
	s.queue(other, 2)
	fleeting := s.owe("topic", nil, []wake.Webhook{w})
	queued := s.queue(w, 5)
	overfull := func(most, limit int, want ...string) {
		s.Helper()
		s.check(func(r store.Reader) { s.same("overfull", want, got[[]string](s)(r.Overfull(most, limit))) })
	}
	overfull(6, 10)
	overfull(5, 10, w.ID)
	overfull(1, 0)
	s.check(func(r store.Reader) { s.same("at most one", 1, len(got[[]string](s)(r.Overfull(1, 1)))) })
	trim := func(most, want int) {
		s.Helper()
		s.update(func(t store.Tx) error {
			s.same("dropped", want, got[int](s)(t.TrimDeliveries(w.ID, most)))
			return nil
		})
	}
	trim(6, 0)
	trim(3, 3)
	s.erased("dropped", fleeting, true)
	head := queued[4].Seq
	s.check(func(r store.Reader) {
		s.same("watermark", queued[2].Seq-1, got[wake.Seq](s)(r.Watermark(w.ID)))
		if due := got[time.Time](s)(r.NextDelivery(nil)); due.IsZero() || due.After(start) {
			s.Errorf("the notice is due at %v, want at once", due)
		}
	})
	s.append(occurrence(w.App, "elsewhere"))
	trim(2, 1) // its notice takes the place of the other
	head++
	var kinds []wake.DeliveryKind
	var places []wake.Seq
	for _, d := range s.take(store.ClaimQuery{Now: start.Add(time.Hour), Limit: 100, PerWebhook: 100}) {
		if d.Webhook == w.ID {
			kinds, places = append(kinds, d.Kind), append(places, d.Seq)
		}
	}
	s.same("kinds", []wake.DeliveryKind{wake.DeliveryGap, "", ""}, kinds)
	s.same("places", []wake.Seq{queued[3].Seq - 1, queued[3].Seq, queued[4].Seq}, places)

	s.append(occurrence(w.App, "elsewhere"))
	trim(1, 1) // the notice that is under way stays
	s.append(occurrence(w.App, "elsewhere"))
	trim(-1, 1)
	gaps := s.all(start.Add(time.Hour))
	s.same("the later notice alone", 1, len(gaps))
	s.same("its kind and place", []any{wake.DeliveryGap, head + 2}, []any{gaps[0].Kind, gaps[0].Seq})
	trim(0, 0)
	s.update(func(t store.Tx) error {
		s.same("of no webhook", 0, got[int](s)(t.TrimDeliveries("none", 0)))
		return nil
	})
	s.sound()
}

func testClaimHosts(s *suite) {
	app := s.addApp()
	at := func(host string, n int) []wake.Delivery {
		w := s.addWebhook(app.ID, "topic")
		w.Host = host
		s.update(func(t store.Tx) error { return t.PutWebhook(w) })
		return s.queue(w, n)
	}
	dead, quick, bare := at("dead.example:443", 3), at("quick.example:443", 2), at("", 1)
	due := func(want time.Time, except ...string) {
		s.Helper()
		s.check(func(r store.Reader) { s.same("next delivery", want, got[time.Time](s)(r.NextDelivery(except))) })
	}
	now := start.Add(time.Hour)
	claim := func(limit int, except ...string) []wake.Delivery {
		s.Helper()
		claimed := s.take(store.ClaimQuery{Now: now, Limit: limit, PerWebhook: 10, ExceptHosts: except})
		for i := range claimed {
			claimed[i].Watermark = 0
		}
		return claimed
	}
	due(start, "dead.example:443")
	due(time.Time{}, "dead.example:443", "quick.example:443", "")
	s.same("of no host", []wake.Delivery{}, claim(10, "dead.example:443", "quick.example:443", ""))
	s.same("the first elsewhere", leased(now, quick[0]), claim(1, "dead.example:443", "other.example:443", ""))
	s.same("all elsewhere", leased(now, bare[0], quick[1]), claim(10, "dead.example:443"))
	due(now.Add(30*time.Minute), "dead.example:443")
	due(start)
	s.same("the others", leased(now, dead...), claim(10))
}
