package storetest

import (
	"encoding/json"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func testSubscriptions(s *suite) {
	c := s.addConversation(s.addApp().ID)
	full := wake.Subscription{
		ID: "full", App: c.App, Conversation: c.ID, User: "ada", Topic: "ev/a/1", Event: "a", Arguments: []byte(`{"n":1.0}`),
		Filter: wake.Filter{"b": json.RawMessage(`"<&>"`), "a": json.RawMessage(`1.50`)},
		Once:   true, Claimed: true, From: 3, CreatedAt: start, ExpiresAt: start.Add(time.Hour),
	}
	bare := wake.Subscription{ID: "bare", App: c.App, Conversation: c.ID, Topic: "plain", CreatedAt: start, ExpiresAt: start}
	s.change(func(t store.Tx) error {
		return do(
			func() error { return t.PutSubscription(full) },
			func() error { return t.PutSubscription(bare) },
		)
	}, func(r store.Reader) {
		s.same("with everything", full, got[wake.Subscription](s)(r.Subscription("full")))
		s.same("with nothing", bare, got[wake.Subscription](s)(r.Subscription("bare")))
		s.is("none", store.ErrNotFound, fails(r.Subscription("other")))

		of := func(topic, event, arguments string) (wake.Subscription, error) {
			return r.SubscriptionOf(c.ID, topic, event, json.RawMessage(arguments))
		}
		s.same("to an event", full, got[wake.Subscription](s)(of("ev/a/1", "a", `{"n":1.0}`)))
		s.same("to a topic", bare, got[wake.Subscription](s)(r.SubscriptionOf(c.ID, "plain", "", nil)))
		s.is("other arguments", store.ErrNotFound, fails(of("ev/a/1", "a", `{"n":1}`)))
		s.is("no arguments", store.ErrNotFound, fails(r.SubscriptionOf(c.ID, "ev/a/1", "a", nil)))
		s.is("arguments where there are none", store.ErrNotFound, fails(of("plain", "", `{}`)))
		s.is("another event", store.ErrNotFound, fails(of("ev/a/1", "b", `{"n":1.0}`)))
		s.is("another topic", store.ErrNotFound, fails(of("ev/a/2", "a", `{"n":1.0}`)))
		s.is("another conversation", store.ErrNotFound, fails(r.SubscriptionOf("none", "plain", "", nil)))
	})

	replaced := full
	replaced.User, replaced.Filter, replaced.Once, replaced.Claimed, replaced.From = "bob", nil, false, false, 9
	replaced.ExpiresAt = start.Add(2 * time.Hour)
	s.change(func(t store.Tx) error { return t.PutSubscription(replaced) }, func(r store.Reader) {
		s.same("replaced", replaced, got[wake.Subscription](s)(r.Subscription("full")))
		s.same("all, in the order of creation", []wake.Subscription{replaced, bare},
			got[[]wake.Subscription](s)(r.SubscriptionsOf(c.ID)))
	})
}

func testSubscriptionLists(s *suite) {
	app, other := s.addApp(), s.addApp()
	c, d, e := s.addConversation(app.ID), s.addConversation(app.ID), s.addConversation(other.ID)
	a := s.addSubscription(c, "ev/a")
	b := s.addSubscription(d, "ev/a")
	plain := s.subscription(d, "plain")
	plain.Event, plain.Arguments, plain.User = "", nil, "bob"
	ended := s.subscription(d, "ev/a")
	ended.Until, ended.EndedAt = 7, start.Add(time.Minute)
	s.update(func(t store.Tx) error {
		return do(
			func() error { return t.PutSubscription(plain) },
			func() error { return t.PutSubscription(ended) },
		)
	})
	elsewhere := s.addSubscription(e, "ev/a")

	type subscriptions = []wake.Subscription
	s.check(func(r store.Reader) {
		s.same("of a conversation", subscriptions{b, plain, ended}, got[subscriptions](s)(r.SubscriptionsOf(d.ID)))
		s.same("ever", subscriptions{b, plain, ended}, got[subscriptions](s)(r.SubscriptionsEver(d.ID)))
		s.same("counted", 2, got[int](s)(r.CountSubscriptions(d.ID)))
		s.same("of a user", subscriptions{a, b}, got[subscriptions](s)(r.SubscriptionsOfUser(app.ID, "ada")))
		s.same("of another", subscriptions{plain}, got[subscriptions](s)(r.SubscriptionsOfUser(app.ID, "bob")))
		s.same("of an event", subscriptions{a, b}, got[subscriptions](s)(r.SubscriptionsOfEvent(app.ID, "crawl.finished")))
		s.same("of an app", subscriptions{a, b, plain}, got[subscriptions](s)(r.SubscriptionsOfApp(app.ID)))
		s.same("of the other app", subscriptions{elsewhere}, got[subscriptions](s)(r.SubscriptionsOfApp(other.ID)))
		s.same("of no conversation", subscriptions{}, got[subscriptions](s)(r.SubscriptionsOf("none")))
		s.same("counted of none", 0, got[int](s)(r.CountSubscriptions("none")))
	})

	// What an ended one was owed lies behind once the conversation has come so far.
	s.change(func(t store.Tx) error { return t.Advance(d.ID, 6) }, func(r store.Reader) {
		s.same("one place before", subscriptions{b, plain, ended}, got[subscriptions](s)(r.SubscriptionsOf(d.ID)))
	})
	s.change(func(t store.Tx) error { return t.Advance(d.ID, 7) }, func(r store.Reader) {
		s.same("there", subscriptions{b, plain}, got[subscriptions](s)(r.SubscriptionsOf(d.ID)))
		s.same("ever", subscriptions{b, plain, ended}, got[subscriptions](s)(r.SubscriptionsEver(d.ID)))
	})
}

func testSubscriptionsTo(s *suite) {
	app, other := s.addApp(), s.addApp()
	c, e := s.addConversation(app.ID), s.addConversation(other.ID)
	type subscriptions = []wake.Subscription
	to := func(r store.Reader, topics ...string) subscriptions {
		return got[subscriptions](s)(r.SubscriptionsTo(app.ID, topics))
	}
	s.check(func(r store.Reader) {
		s.same("to a topic without any", subscriptions{}, to(r, "one"))
	})
	first := s.subscription(c, "one")
	second := s.subscription(c, "two")
	third := s.subscription(c, "one")
	elsewhere := s.subscription(e, "one")
	s.change(func(t store.Tx) error {
		return do(
			func() error { return t.PutSubscription(first) },
			func() error { return t.PutSubscription(second) },
			func() error { return t.PutSubscription(third) },
			func() error { return t.PutSubscription(elsewhere) },
		)
	}, func(r store.Reader) {
		s.same("to one topic", subscriptions{first, third}, to(r, "one"))
		s.same("to both", subscriptions{first, second, third}, to(r, "two", "one", "none", "two"))
		s.same("to no topic", subscriptions{}, to(r))
	})

	moved := first
	moved.Topic = "two"
	s.change(func(t store.Tx) error { return t.PutSubscription(moved) }, func(r store.Reader) {
		s.same("to the topic it left", subscriptions{third}, to(r, "one"))
		s.same("to the topic it came to", subscriptions{moved, second}, to(r, "two"))
	})
	expired := second
	expired.ExpiresAt = start.Add(-time.Hour)
	s.change(func(t store.Tx) error { return t.PutSubscription(expired) }, func(r store.Reader) {
		s.same("with an expired one that was not ended", subscriptions{moved, expired}, to(r, "two"))
	})
	s.change(func(t store.Tx) error { return fails(t.EndSubscription(moved.ID, 5, start)) }, func(r store.Reader) {
		s.same("without the ended one", subscriptions{expired}, to(r, "two"))
	})
}

func testEndSubscription(s *suite) {
	c := s.addConversation(s.addApp().ID)
	sub := s.addSubscription(c, "topic")
	ended := sub
	ended.Until, ended.EndedAt = 4, start.Add(time.Minute)
	s.change(func(t store.Tx) error {
		s.same("was live", true, got[bool](s)(t.EndSubscription(sub.ID, 4, ended.EndedAt)))
		s.same("again", false, got[bool](s)(t.EndSubscription(sub.ID, 9, start.Add(time.Hour))))
		s.same("none", false, got[bool](s)(t.EndSubscription("none", 9, start)))
		return nil
	}, func(r store.Reader) {
		s.same("ended", ended, got[wake.Subscription](s)(r.Subscription(sub.ID)))
		s.is("as a live one", store.ErrNotFound, fails(r.SubscriptionOf(c.ID, sub.Topic, sub.Event, sub.Arguments)))
		s.same("counted", 0, got[int](s)(r.CountSubscriptions(c.ID)))
	})

	again := s.subscription(c, "topic")
	s.change(func(t store.Tx) error { return t.PutSubscription(again) }, func(r store.Reader) {
		s.same("the new live one", again, got[wake.Subscription](s)(r.SubscriptionOf(c.ID, sub.Topic, sub.Event, sub.Arguments)))
		s.same("ever", []wake.Subscription{ended, again}, got[[]wake.Subscription](s)(r.SubscriptionsEver(c.ID)))
	})
}

func testExpiredSubscriptions(s *suite) {
	c := s.addConversation(s.addApp().ID)
	var subs []wake.Subscription
	for i := range 4 {
		sub := s.subscription(c, "topic")
		sub.ExpiresAt = start.Add(time.Duration(i) * time.Minute)
		subs = append(subs, sub)
	}
	s.change(func(t store.Tx) error {
		for _, sub := range subs {
			if err := t.PutSubscription(sub); err != nil {
				return err
			}
		}
		return fails(t.EndSubscription(subs[1].ID, 1, start))
	}, func(r store.Reader) {
		expired := func(at time.Time, limit int) []wake.Subscription {
			return got[[]wake.Subscription](s)(r.ExpiredSubscriptions(at, limit))
		}
		s.same("before", []wake.Subscription{}, expired(start.Add(-time.Microsecond), 10))
		s.same("at the very time", subs[:1], expired(start, 10))
		s.same("without the ended one", []wake.Subscription{subs[0], subs[2]}, expired(subs[2].ExpiresAt, 10))
		s.same("at most one", 1, len(expired(start.Add(time.Hour), 1)))
		s.same("at most none", 0, len(expired(start.Add(time.Hour), 0)))
	})
}
