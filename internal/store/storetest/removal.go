package storetest

import (
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func testDeleteApp(s *suite) {
	app, other := s.addApp(), s.addApp()
	fill := func(app string) (wake.Conversation, wake.Webhook, wake.Occurrence) {
		c := s.addConversation(app)
		s.addSubscription(c, "topic")
		ended := s.addSubscription(c, "topic")
		w := s.addWebhook(app, "topic")
		s.queue(w, 2)
		keyed := occurrence(app, "topic")
		keyed.Key = "k"
		keyed = s.append(keyed)
		s.update(func(t store.Tx) error {
			return do(
				func() error { return t.CreateKey(wake.Key{ID: "key of " + app, App: app, Public: []byte{1}}) },
				func() error { return fails(t.PutManifest(app, []byte(`{}`))) },
				func() error { return fails(t.EndSubscription(ended.ID, 1, start)) },
			)
		})
		return c, w, keyed
	}
	c, w, o := fill(app.ID)
	keptC, keptW, keptO := fill(other.ID)

	gone := func(r store.Reader) {
		s.same("keys", []wake.Key{}, got[[]wake.Key](s)(r.Keys(app.ID)))
		s.is("key", store.ErrNotFound, fails(r.Key("key of "+app.ID)))
		s.same("manifest", store.Manifest{}, got[store.Manifest](s)(r.Manifest(app.ID)))
		s.is("conversation", store.ErrNotFound, fails(r.Conversation(c.ID)))
		s.is("thread", store.ErrNotFound, fails(r.ConversationOf(app.ID, c.Kind(), c.User, c.Thread)))
		s.same("subscriptions", []wake.Subscription{}, got[[]wake.Subscription](s)(r.SubscriptionsOfApp(app.ID)))
		s.same("subscriptions ever", []wake.Subscription{}, got[[]wake.Subscription](s)(r.SubscriptionsEver(c.ID)))
		s.same("subscriptions to", []wake.Subscription{}, got[[]wake.Subscription](s)(r.SubscriptionsTo(app.ID, []string{"topic"})))
		s.same("webhooks to", []wake.Webhook{}, got[[]wake.Webhook](s)(r.WebhooksTo(app.ID, []string{"topic"})))
		s.is("webhook", store.ErrNotFound, fails(r.Webhook(w.ID)))
		s.is("occurrence", store.ErrNotFound, fails(r.Occurrence(o.Seq)))
		s.is("occurrence by key", store.ErrNotFound, fails(r.OccurrenceOf(app.ID, o.Event, "k")))
		s.same("occurrences", []wake.Occurrence{}, got[[]wake.Occurrence](s)(r.Occurrences(app.ID, []string{"topic"}, 0, 10)))
		s.same("the log goes on", keptO.Seq, got[store.Log](s)(r.Log()).Head)

		s.same("what another app has: conversation", keptC, got[wake.Conversation](s)(r.Conversation(keptC.ID)))
		s.same("webhook", keptW, got[wake.Webhook](s)(r.Webhook(keptW.ID)))
		s.same("subscriptions", 2, len(got[[]wake.Subscription](s)(r.SubscriptionsEver(keptC.ID))))
		s.same("occurrence", keptO, got[wake.Occurrence](s)(r.OccurrenceOf(other.ID, keptO.Event, "k")))
		s.same("occurrences", 3, len(got[[]wake.Occurrence](s)(r.Occurrences(other.ID, []string{"topic"}, 0, 10))))
	}
	s.change(func(t store.Tx) error { return t.DeleteApp(app.ID) }, func(r store.Reader) {
		s.is("app", store.ErrNotFound, fails(r.App(app.ID)))
		gone(r)
	})
	s.same("deliveries left, the other app's", 2, len(s.claim(start.Add(time.Hour), 10, 10)))

	// An app made anew under the same id has nothing of the old one.
	s.change(func(t store.Tx) error { return t.CreateApp(app) }, gone)
	s.reopen()
	s.check(gone)
	again := occurrence(app.ID, "topic")
	again.Key = "k"
	if again = s.append(again); again.Seq <= keptO.Seq {
		s.Errorf("place %d given again", again.Seq)
	}
}

// prune prunes until there is nothing more, and returns the steps it took.
func (s *suite) prune(before time.Time, limit int) int {
	s.Helper()
	for steps := 1; ; steps++ {
		var more bool
		s.update(func(t store.Tx) error {
			more = got[bool](s)(t.Prune(before, limit))
			return nil
		})
		if !more {
			return steps
		}
		if steps == 1000 {
			s.Fatal("Prune always says that there is more")
		}
	}
}

func testPruneOccurrences(s *suite) {
	w := s.addWebhook(s.addApp().ID, "topic")
	var all []wake.Occurrence
	for i := range 10 {
		o := occurrence(w.App, "topic", "other")
		o.Key = s.id("key")
		o.At = start.Add(time.Duration(i) * time.Minute)
		all = append(all, s.append(o))
	}
	s.update(func(t store.Tx) error {
		return do(
			func() error { return t.QueueDelivery(wake.Delivery{Webhook: w.ID, Seq: all[2].Seq, NextAt: start}) },
			func() error {
				return t.QueueDelivery(wake.Delivery{Webhook: w.ID, Seq: all[9].Seq, NextAt: start.Add(1)})
			},
		)
	})
	s.prune(start, 3)
	s.check(func(r store.Reader) {
		s.same("nothing is older than the oldest", wake.Seq(0), got[store.Log](s)(r.Log()).Horizon)
	})

	left := all[7:]
	if steps := s.prune(left[0].At, 3); steps < 3 {
		s.Errorf("7 occurrences pruned in %d steps of at most 3", steps)
	}
	pruned := func(r store.Reader) {
		log := got[store.Log](s)(r.Log())
		s.same("the horizon", all[6].Seq, log.Horizon)
		s.same("the head", all[9].Seq, log.Head)
		s.is("an old one", store.ErrNotFound, fails(r.Occurrence(all[6].Seq)))
		s.is("an old one by its key", store.ErrNotFound, fails(r.OccurrenceOf(w.App, all[6].Event, all[6].Key)))
		s.same("those left", left, got[[]wake.Occurrence](s)(r.Occurrences(w.App, []string{"topic"}, 0, 10)))
		s.same("on two topics", left, got[[]wake.Occurrence](s)(r.Occurrences(w.App, []string{"topic", "other"}, 0, 10)))
	}
	s.check(pruned)
	s.reopen()
	s.check(pruned)
	claimed := s.claim(start.Add(time.Hour), 10, 10)
	if len(claimed) != 2 || claimed[0].Kind != wake.DeliveryGap || claimed[1].Seq != all[9].Seq {
		s.Errorf("deliveries %v, want a notice of the gap and that of the one left only", claimed)
	}

	again := all[6]
	again = s.append(again)
	s.check(func(r store.Reader) {
		s.same("a pruned key is free", again, got[wake.Occurrence](s)(r.Occurrence(again.Seq)))
	})

	// All of the log goes, its places do not come back.
	s.prune(start.Add(24*time.Hour), 100)
	s.check(func(r store.Reader) { s.same("the horizon", again.Seq, got[store.Log](s)(r.Log()).Horizon) })
	s.reopen()
	if next := s.append(occurrence(w.App, "topic")); next.Seq <= again.Seq {
		s.Errorf("place %d given again", next.Seq)
	}
}

func testPruneRest(s *suite) {
	app := s.addApp()
	old, recent := start.Add(-time.Hour), start.Add(time.Hour)
	conversation := func(seen time.Time) wake.Conversation {
		c := wake.Conversation{ID: s.id("conversation"), App: app.ID, CreatedAt: old, SeenAt: seen}
		s.update(func(t store.Tx) error { return t.PutConversation(c) })
		return c
	}
	end := func(sub wake.Subscription, at time.Time) {
		s.update(func(t store.Tx) error { return fails(t.EndSubscription(sub.ID, 1, at)) })
	}
	subscribed := conversation(old) // not seen for long, but subscribed
	live := s.addSubscription(subscribed, "topic")
	endedEarly := s.addSubscription(subscribed, "topic")
	endedLate := s.addSubscription(subscribed, "topic")
	end(endedEarly, old)
	end(endedLate, recent)
	unsubscribed := conversation(old) // its one subscription goes, and then it
	end(s.addSubscription(unsubscribed, "topic"), old)
	idle := []wake.Conversation{conversation(old), conversation(old), conversation(old)}
	seen := conversation(recent)

	expired, lasting := s.addWebhook(app.ID, "topic"), s.addWebhook(app.ID, "topic")
	expired.ExpiresAt = old
	s.update(func(t store.Tx) error { return t.PutWebhook(expired) })
	s.queue(expired, 3)
	kept := s.queue(lasting, 1)

	if steps := s.prune(start, 2); steps < 2 {
		s.Errorf("pruned in %d step of at most 2 rows", steps)
	}
	s.prune(start, 2)
	s.check(func(r store.Reader) {
		s.same("subscriptions", []string{live.ID, endedLate.ID}, ids(got[[]wake.Subscription](s)(r.SubscriptionsEver(subscribed.ID))))
		s.same("a subscribed conversation", subscribed, got[wake.Conversation](s)(r.Conversation(subscribed.ID)))
		s.same("one seen since", seen, got[wake.Conversation](s)(r.Conversation(seen.ID)))
		for _, c := range append(idle, unsubscribed) {
			s.is("an idle conversation", store.ErrNotFound, fails(r.Conversation(c.ID)))
		}
		s.is("an expired webhook", store.ErrNotFound, fails(r.Webhook(expired.ID)))
		s.same("webhooks", []wake.Webhook{lasting}, got[[]wake.Webhook](s)(r.WebhooksTo(app.ID, []string{"topic"})))
	})
	now := start.Add(time.Hour)
	s.same("deliveries", leased(now, kept...), s.claim(now, 10, 10))
}

func ids(subs []wake.Subscription) []string {
	var out []string
	for _, sub := range subs {
		out = append(out, sub.ID)
	}
	return out
}
