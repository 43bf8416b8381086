package storetest

import (
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// listed wants exactly these webhooks in the lists of an app's.
func (s *suite) listed(app string, want ...wake.Webhook) {
	s.Helper()
	s.check(func(r store.Reader) {
		s.Helper()
		s.same("to the topic", want, got[[]wake.Webhook](s)(r.WebhooksTo(app, []string{"topic"})))
		s.same("of the user", want, got[[]wake.Webhook](s)(r.WebhooksOfUser(app, "ada")))
		s.same("of the event", want, got[[]wake.Webhook](s)(r.WebhooksOfEvent(app, "crawl.finished")))
		s.same("of the app", want, got[[]wake.Webhook](s)(r.WebhooksOfApp(app)))
	})
}

func testEndWebhook(s *suite) {
	app := s.addApp()
	w, other := s.addWebhook(app.ID, "topic"), s.addWebhook(app.ID, "topic")
	w.Suspended, w.SuspendedAt = true, start
	s.update(func(t store.Tx) error {
		return do(
			func() error { return t.PutWebhook(w) },
			func() error { return t.PutHealth(wake.Health{Webhook: w.ID, LastError: "timeout"}) },
		)
	})
	s.queue(w, 2)
	fleeting := s.owe("topic", nil, []wake.Webhook{w})
	s.listed(app.ID, w, other)
	at := start.Add(time.Hour)
	s.update(func(t store.Tx) error {
		s.same("ended", true, got[bool](s)(t.EndWebhook(w.ID, "not_found", at)))
		s.same("again", false, got[bool](s)(t.EndWebhook(w.ID, "forbidden", at.Add(time.Hour))))
		s.same("none", false, got[bool](s)(t.EndWebhook("none", "forbidden", at)))
		return nil
	})
	s.erased("of one that ended", fleeting, true)
	s.reopen()
	s.listed(app.ID, other)
	ended := w
	ended.EndedAt, ended.EndReason, ended.Suspended, ended.SuspendedAt = at, "not_found", false, time.Time{}
	s.check(func(r store.Reader) { s.same("itself", ended, got[wake.Webhook](s)(r.Webhook(w.ID))) })
	s.due("its notice", at)
	notice := wake.Delivery{Webhook: w.ID, Seq: fleeting.Seq, Kind: wake.DeliveryTerminated, NextAt: at}
	claimed := s.all(at)
	s.same("its notice alone", leased(at, notice), claimed)

	s.update(func(t store.Tx) error { return t.PutWebhook(w) })
	s.listed(app.ID, w, other)
	s.check(func(r store.Reader) {
		s.same("health of one that begins anew", wake.Health{Webhook: w.ID}, got[wake.Health](s)(r.Health(w.ID)))
	})
	s.due("no notice", time.Time{})
	s.update(func(t store.Tx) error {
		return do(
			func() error { return s.lapsed(t.FinishDelivery(claimed[0])) },
			func() error { return fails(t.EndWebhook(w.ID, "forbidden", at)) },
			func() error { return fails(t.DeleteWebhook(w.ID)) },
		)
	})
	s.listed(app.ID, other)
	s.due("nothing of a deleted one", time.Time{})
	s.sound()
}

// An ended webhook goes with its user.
func testForgetEndedWebhook(s *suite) {
	w := s.addWebhook(s.addApp().ID, "topic")
	s.update(func(t store.Tx) error { return fails(t.EndWebhook(w.ID, "forbidden", start)) })
	s.forget(w.App, "ada", 10)
	s.check(func(r store.Reader) { s.is("webhook", store.ErrNotFound, fails(r.Webhook(w.ID))) })
	s.due("no notice", time.Time{})
}

func testPruneWebhooks(s *suite) {
	app := s.addApp()
	early, late, forever := s.addWebhook(app.ID, "topic"), s.addWebhook(app.ID, "topic"), s.addWebhook(app.ID, "topic")
	forever.ExpiresAt = time.Time{}
	s.update(func(t store.Tx) error {
		return do(
			func() error { return t.PutWebhook(forever) },
			func() error { return fails(t.EndWebhook(early.ID, "forbidden", start.Add(-time.Hour))) },
			func() error { return fails(t.EndWebhook(late.ID, "forbidden", start)) },
		)
	})
	s.queue(forever, 1)
	s.prune(start, 1)
	s.check(func(r store.Reader) {
		s.is("one that ended before", store.ErrNotFound, fails(r.Webhook(early.ID)))
		s.same("one that ended then", "forbidden", got[wake.Webhook](s)(r.Webhook(late.ID)).EndReason)
		s.same("one that never expires", forever, got[wake.Webhook](s)(r.Webhook(forever.ID)))
	})
	s.listed(app.ID, forever)
	s.same("deliveries: a notice and an occurrence", 2, len(s.all(start)))
}

// What retention takes out of a queue leaves one notice there.
func testPruneGaps(s *suite) {
	app := s.addApp()
	w, other, idle := s.addWebhook(app.ID, "topic"), s.addWebhook(app.ID, "topic"), s.addWebhook(app.ID, "topic")
	all := s.queue(w, 4)
	s.update(func(t store.Tx) error {
		return t.QueueDelivery(wake.Delivery{Webhook: other.ID, Seq: all[0].Seq, NextAt: start.Add(time.Hour)})
	})
	young := occurrence(app.ID, "topic")
	young.At = start.Add(time.Hour)
	young = s.append(young)
	s.update(func(t store.Tx) error {
		return t.QueueDelivery(wake.Delivery{Webhook: w.ID, Seq: young.Seq, NextAt: start.Add(time.Minute)})
	})
	for removed := 1; removed > 0; {
		s.update(func(t store.Tx) error {
			removed = got[int](s)(t.PruneLog(start.Add(time.Minute), 3))
			return nil
		})
	}
	owed := map[string][]wake.DeliveryKind{}
	for _, d := range s.all(start.Add(2 * time.Hour)) {
		owed[d.Webhook] = append(owed[d.Webhook], d.Kind)
		place := young.Seq // of what is left, and the log's head where nothing is
		if d.Webhook == w.ID && d.Kind == wake.DeliveryGap {
			place-- // what is left is owed still
		}
		s.same("place", place, d.Seq)
	}
	s.same("what is queued", map[string][]wake.DeliveryKind{w.ID: {wake.DeliveryGap, ""}, other.ID: {wake.DeliveryGap}}, owed)
	s.check(func(r store.Reader) { s.same("with nothing missing", idle, got[wake.Webhook](s)(r.Webhook(idle.ID))) })
	s.sound()
}

func testVerifiedAt(s *suite) {
	app, other := s.addApp(), s.addApp()
	put := func(app, principal, url string, at time.Time) wake.Webhook {
		w := wake.Webhook{ID: s.id("webhook"), App: app, Principal: principal, URL: url, Event: "a", Topic: "topic", VerifiedAt: at}
		s.update(func(t store.Tx) error { return t.PutWebhook(w) })
		return w
	}
	const url = "https://example.com/hook"
	put(app.ID, "user/ada", url, start)
	last := put(app.ID, "user/ada", url, start.Add(time.Hour))
	put(app.ID, "user/ada", url, time.Time{})
	put(app.ID, "user/ada", url+"s", start.Add(2*time.Hour))
	put(app.ID, "user/bob", url, start.Add(3*time.Hour))
	put(other.ID, "user/ada", url, start.Add(4*time.Hour))
	put(app.ID, "user/eve", url, time.Time{})
	s.update(func(t store.Tx) error { return fails(t.EndWebhook(last.ID, "forbidden", start)) })
	s.check(func(r store.Reader) {
		at := func(principal string) time.Time { return got[time.Time](s)(r.VerifiedAt(app.ID, principal, url)) }
		s.same("the last time, by one that has ended", start.Add(time.Hour), at("user/ada"))
		s.same("another's", start.Add(3*time.Hour), at("user/bob"))
		s.same("never by a call", time.Time{}, at("user/eve"))
		s.same("of nobody", time.Time{}, at("user/nobody"))
	})
}

// Of several that claim at once, none gets what another has, and together they get all.
func testClaimers(s *suite) {
	const claimers, hooks, each = 4, 5, 20
	app := s.addApp()
	for range hooks {
		s.queue(s.addWebhook(app.ID, "topic"), each)
	}
	type place struct {
		webhook string
		seq     wake.Seq
	}
	var mu sync.Mutex
	times := map[place]int{}
	var all sync.WaitGroup
	now := start.Add(time.Hour)
	for range claimers {
		all.Go(func() {
			for {
				var claimed []wake.Delivery
				err := s.Update(s.Context(), func(t store.Tx) (err error) {
					claimed, err = t.ClaimDeliveries(store.ClaimQuery{Now: now, Lease: now.Add(time.Minute), Limit: 3, PerWebhook: 100})
					return err
				})
				if err != nil || len(claimed) == 0 {
					if err != nil {
						s.Error(err)
					}
					return
				}
				for _, d := range claimed {
					mu.Lock()
					times[place{d.Webhook, d.Seq}]++
					mu.Unlock()
					err := s.Update(s.Context(), func(t store.Tx) error {
						return do(
							func() error { return t.PutHealth(wake.Health{Webhook: d.Webhook, LastDeliveryAt: now}) },
							func() error {
								return t.RecordAttempt(wake.Attempt{Webhook: d.Webhook, Seq: d.Seq, Number: 1, At: now, Outcome: wake.AttemptDelivered})
							},
							func() error { return s.held(t.FinishDelivery(d)) },
						)
					})
					if err != nil {
						s.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	s.same("deliveries", hooks*each, len(times))
	for at, n := range times {
		if n != 1 {
			s.Errorf("%v was claimed %d times", at, n)
		}
	}
	s.check(func(r store.Reader) {
		s.same("attempts", hooks*each, len(got[[]wake.Attempt](s)(r.Attempts(store.AttemptQuery{App: app.ID, Limit: 1000}))))
	})
	s.due("none is left", time.Time{})
	s.sound()
}
