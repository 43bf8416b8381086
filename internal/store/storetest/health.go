package storetest

import (
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func testHealth(s *suite) {
	w := s.addWebhook(s.addApp().ID, "topic")
	health := func(id string) func(r store.Reader) wake.Health {
		return func(r store.Reader) wake.Health { return got[wake.Health](s)(r.Health(id)) }
	}
	s.check(func(r store.Reader) {
		s.same("before any attempt", wake.Health{Webhook: w.ID}, health(w.ID)(r))
		s.same("of no webhook", wake.Health{Webhook: "none"}, health("none")(r))
	})
	full := wake.Health{Webhook: w.ID, LastDeliveryAt: start, LastError: "timeout", FailedSince: start.Add(1 * time.Second),
		ThrottledUntil: start.Add(2 * time.Second), WindowAt: start.Add(3 * time.Second), Attempts: 7, Failures: 3}
	s.change(func(t store.Tx) error {
		return do(
			func() error { return t.PutHealth(full) },
			func() error { return t.PutHealth(wake.Health{Webhook: "none", LastError: "timeout"}) },
		)
	}, func(r store.Reader) {
		s.same("with everything", full, health(w.ID)(r))
		s.same("of no webhook", wake.Health{Webhook: "none"}, health("none")(r))
		s.same("the webhook", w, got[wake.Webhook](s)(r.Webhook(w.ID)))
	})
	s.reopen()
	s.check(func(r store.Reader) { s.same("after a restart", full, health(w.ID)(r)) })
	s.update(func(t store.Tx) error { return t.PutWebhook(w) })
	s.check(func(r store.Reader) { s.same("with the webhook put again", full, health(w.ID)(r)) })
	s.change(func(t store.Tx) error { return t.PutHealth(wake.Health{Webhook: w.ID}) }, func(r store.Reader) {
		s.same("replaced", wake.Health{Webhook: w.ID}, health(w.ID)(r))
	})
	s.update(func(t store.Tx) error {
		return do(
			func() error { return t.PutHealth(full) },
			func() error { return fails(t.DeleteWebhook(w.ID)) },
			func() error { return t.PutWebhook(w) },
		)
	})
	s.check(func(r store.Reader) {
		s.same("of a new webhook with the id", wake.Health{Webhook: w.ID}, health(w.ID)(r))
	})
}

func testAttempts(s *suite) {
	app, other := s.addApp(), s.addApp()
	first, second, elsewhere := s.addWebhook(app.ID, "topic"), s.addWebhook(app.ID, "topic"), s.addWebhook(other.ID, "topic")
	type attempts = []wake.Attempt
	var all attempts // by number
	record := func(a wake.Attempt) {
		s.Helper()
		s.update(func(t store.Tx) error { return t.RecordAttempt(a) })
		var newest attempts
		s.view(func(r store.Reader) error {
			newest = got[attempts](s)(r.Attempts(store.AttemptQuery{App: app.ID, Limit: 1}))
			return nil
		})
		a.N = newest[0].N
		all = append(all, a)
		s.same("what was kept", a, newest[0])
	}
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Minute) }
	record(wake.Attempt{Webhook: first.ID, Seq: 7, Number: 1, At: at(0), Took: 1234 * time.Microsecond, Status: 503, Reason: "http_5xx",
		Outcome: wake.AttemptRetrying, NextAt: at(5)})
	record(wake.Attempt{Webhook: second.ID, Seq: 8, Kind: wake.DeliveryGap, Number: 2, At: at(1), Outcome: wake.AttemptDelivered, Status: 200})
	record(wake.Attempt{Webhook: first.ID, Seq: 7, Number: 2, At: at(2), Outcome: wake.AttemptAbandoned, Reason: "timeout"})
	record(wake.Attempt{Webhook: first.ID, Seq: 9, Number: 1, At: at(3), Outcome: wake.AttemptDelivered, Status: 204})
	s.update(func(t store.Tx) error {
		return do(
			func() error {
				return t.RecordAttempt(wake.Attempt{Webhook: elsewhere.ID, Seq: 7, Outcome: wake.AttemptDelivered, At: at(9)})
			},
			func() error {
				return t.RecordAttempt(wake.Attempt{Webhook: "none", Outcome: wake.AttemptDelivered, At: at(9)})
			},
		)
	})
	for i := 1; i < len(all); i++ {
		if all[i].N <= all[i-1].N {
			s.Errorf("number %d comes after %d", all[i].N, all[i-1].N)
		}
	}
	pick := func(places ...int) attempts {
		var out attempts
		for _, i := range places {
			out = append(out, all[i])
		}
		return out
	}
	lists := func(r store.Reader) {
		for what, test := range map[string]struct {
			ask  store.AttemptQuery
			want attempts
		}{
			"all":                        {store.AttemptQuery{Limit: 10}, pick(3, 2, 1, 0)},
			"none":                       {store.AttemptQuery{}, nil},
			"the first page":             {store.AttemptQuery{Limit: 2}, pick(3, 2)},
			"the next page":              {store.AttemptQuery{Limit: 2, Before: all[2].N}, pick(1, 0)},
			"of a webhook":               {store.AttemptQuery{Limit: 10, Webhook: first.ID}, pick(3, 2, 0)},
			"of a webhook, next page":    {store.AttemptQuery{Limit: 10, Webhook: first.ID, Before: all[2].N}, pick(0)},
			"of another app's webhook":   {store.AttemptQuery{Limit: 10, Webhook: elsewhere.ID}, nil},
			"failed":                     {store.AttemptQuery{Limit: 10, Failed: true}, pick(2, 0)},
			"failed, next page":          {store.AttemptQuery{Limit: 10, Failed: true, Before: all[2].N}, pick(0)},
			"failed of a webhook":        {store.AttemptQuery{Limit: 10, Failed: true, Webhook: first.ID}, pick(2, 0)},
			"failed of another":          {store.AttemptQuery{Limit: 10, Failed: true, Webhook: second.ID}, nil},
			"since":                      {store.AttemptQuery{Limit: 10, Since: at(2)}, pick(3, 2)},
			"until":                      {store.AttemptQuery{Limit: 10, Until: at(2)}, pick(1, 0)},
			"between":                    {store.AttemptQuery{Limit: 10, Since: at(1), Until: at(3)}, pick(2, 1)},
			"at a place":                 {store.AttemptQuery{Limit: 10, Seq: 7}, pick(2, 0)},
			"at a place, next page":      {store.AttemptQuery{Limit: 10, Seq: 7, Before: all[2].N}, pick(0)},
			"at a place, since":          {store.AttemptQuery{Limit: 10, Seq: 7, Since: at(1), Until: at(3)}, pick(2)},
			"at a notice's place":        {store.AttemptQuery{Limit: 10, Seq: 8}, nil},
			"at a place, failed":         {store.AttemptQuery{Limit: 10, Seq: 9, Failed: true}, nil},
			"at a place, of a webhook":   {store.AttemptQuery{Limit: 10, Seq: 9, Webhook: first.ID}, pick(3)},
			"at a place, of another":     {store.AttemptQuery{Limit: 10, Seq: 9, Webhook: second.ID}, nil},
			"failed since, of a webhook": {store.AttemptQuery{Limit: 10, Since: at(1), Failed: true, Webhook: first.ID}, pick(2)},
		} {
			test.ask.App = app.ID
			s.same(what, test.want, got[attempts](s)(r.Attempts(test.ask)))
		}
	}
	s.check(lists)
	s.reopen()
	s.check(lists)

	s.update(func(t store.Tx) error { return fails(t.DeleteWebhook(second.ID)) })
	left := func(r store.Reader, app string) attempts {
		return got[attempts](s)(r.Attempts(store.AttemptQuery{App: app, Limit: 10}))
	}
	s.check(func(r store.Reader) { s.same("without the webhook's", pick(3, 2, 0), left(r, app.ID)) })
	s.prune(at(2), 1)
	s.check(func(r store.Reader) { s.same("pruned", pick(3, 2), left(r, app.ID)) })
	s.forget(app.ID, "ada", 100)
	s.update(func(t store.Tx) error { return t.DeleteApp(other.ID) })
	s.check(func(r store.Reader) {
		s.same("of a forgotten user", attempts(nil), left(r, app.ID))
		s.same("of a deleted app", attempts(nil), left(r, other.ID))
	})
}

// One webhook's attempts do not take the room of others'.
func testManyAttempts(s *suite) {
	noisy := s.addWebhook(s.addApp().ID, "topic")
	quiet := s.addWebhook(noisy.App, "topic")
	record := func(w wake.Webhook, from, to int) {
		s.Helper()
		s.update(func(t store.Tx) error {
			for number := from; number <= to; number++ {
				at := start.Add(time.Duration(number) * time.Second)
				if err := t.RecordAttempt(wake.Attempt{Webhook: w.ID, Number: number, At: at, Outcome: wake.AttemptDelivered}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	left := func(what string, w wake.Webhook, from, to int) {
		s.Helper()
		s.check(func(r store.Reader) {
			s.Helper()
			var numbers, want []int
			for _, a := range got[[]wake.Attempt](s)(r.Attempts(store.AttemptQuery{App: w.App, Webhook: w.ID, Limit: 2 * store.MostAttemptsOfWebhook})) {
				numbers = append(numbers, a.Number)
			}
			for number := to; number >= from; number-- {
				want = append(want, number)
			}
			s.same(what, want, numbers)
		})
	}
	const most = store.MostAttemptsOfWebhook
	record(quiet, 1, 1)
	record(noisy, 1, most)
	left("as many as may be", noisy, 1, most)
	record(noisy, most+1, most+3)
	left("the last", noisy, 4, most+3)
	s.prune(start.Add(most*time.Second), 100)
	left("after some went by their age", noisy, most, most+3)
	record(noisy, most+4, 2*most)
	left("as many as may be again", noisy, most+1, 2*most)
	record(quiet, 2, 2)
	left("another's, after its age", quiet, 2, 2)
}
