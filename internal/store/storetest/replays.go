package storetest

import (
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func testReplays(s *suite) {
	app := s.addApp()
	c, other := s.addConversation(app.ID), s.addConversation(app.ID)
	one, two := s.addSubscription(c, "one"), s.addSubscription(c, "two")
	elsewhere := s.addSubscription(other, "one")
	type replays = []wake.Replay
	replay := func(of wake.Subscription, from, until wake.Seq) wake.Replay {
		return wake.Replay{Subscription: of.ID, Conversation: of.Conversation, From: from, After: from, Until: until}
	}
	second, first, empty := replay(two, 3, 20), replay(one, 5, 9), replay(elsewhere, 4, 4)
	s.check(func(r store.Reader) {
		s.is("none", store.ErrNotFound, fails(r.Replay(one.ID)))
		s.same("of a conversation without any", replays{}, got[replays](s)(r.ReplaysOf(c.ID)))
	})
	s.change(func(t store.Tx) error {
		return do(
			func() error { return t.PutReplay(second) },
			func() error { return t.PutReplay(first) },
			func() error { return t.PutReplay(empty) },
		)
	}, func(r store.Reader) {
		s.same("by subscription", first, got[wake.Replay](s)(r.Replay(one.ID)))
		s.same("in the order they were made", replays{second, first}, got[replays](s)(r.ReplaysOf(c.ID)))
		s.same("ever", replays{second, first}, got[replays](s)(r.ReplaysEver(c.ID)))
		s.same("an empty one is finished", replays{}, got[replays](s)(r.ReplaysOf(other.ID)))
		s.same("and was", replays{empty}, got[replays](s)(r.ReplaysEver(other.ID)))
	})
	s.is("a second one", store.ErrExists, s.Update(s.Context(), func(t store.Tx) error { return t.PutReplay(replay(one, 0, 5)) }))
	s.is("of what is not there", store.ErrNotFound, s.Update(s.Context(), func(t store.Tx) error {
		return t.PutReplay(wake.Replay{Subscription: "none", Conversation: c.ID, Until: 1})
	}))

	moved := first
	moved.After = 7
	s.change(func(t store.Tx) error {
		return do(
			func() error { return t.AdvanceReplay(one.ID, 7) },
			func() error { return t.AdvanceReplay(one.ID, 6) },
			func() error { return t.AdvanceReplay("none", 6) },
		)
	}, func(r store.Reader) {
		s.same("moved forward, not back", replays{second, moved}, got[replays](s)(r.ReplaysOf(c.ID)))
	})
	moved.After = 9
	s.change(func(t store.Tx) error { return t.AdvanceReplay(one.ID, 9) }, func(r store.Reader) {
		s.same("finished", replays{second}, got[replays](s)(r.ReplaysOf(c.ID)))
		s.same("and still there", replays{second, moved}, got[replays](s)(r.ReplaysEver(c.ID)))
	})
	s.reopen()
	s.check(func(r store.Reader) {
		s.same("after a restart", replays{second, moved}, got[replays](s)(r.ReplaysEver(c.ID)))
	})

	// An ended subscription keeps its replay until it is pruned.
	s.change(func(t store.Tx) error { return fails(t.EndSubscription(two.ID, 20, start.Add(-time.Hour))) }, func(r store.Reader) {
		s.same("of an ended one", replays{second}, got[replays](s)(r.ReplaysOf(c.ID)))
	})
	s.prune(start, 10)
	s.check(func(r store.Reader) {
		s.same("pruned with it", replays{moved}, got[replays](s)(r.ReplaysEver(c.ID)))
	})
	s.change(func(t store.Tx) error { return t.DeleteApp(app.ID) }, func(r store.Reader) {
		s.is("of a deleted app", store.ErrNotFound, fails(r.Replay(one.ID)))
		s.same("all of them", replays{}, got[replays](s)(r.ReplaysEver(c.ID)))
	})
}

func testPlaceBefore(s *suite) {
	before := func(r store.Reader, at time.Time) wake.Seq { return got[wake.Seq](s)(r.PlaceBefore(at)) }
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	s.check(func(r store.Reader) { s.same("in an empty log", wake.Seq(0), before(r, minute(5))) })

	// Two a minute, those of every third minute another app's, which is deleted then.
	app, other := s.addApp(), s.addApp()
	var places []wake.Seq
	s.change(func(t store.Tx) error {
		places = nil
		for i := range 40 {
			o := occurrence(app.ID, "topic")
			if i/2%3 == 2 {
				o.App = other.ID
			}
			o.At = minute(i / 2)
			seq, err := t.Append(o)
			if err != nil {
				return err
			}
			places = append(places, seq)
		}
		return nil
	}, func(r store.Reader) {
		for i := range 20 {
			want := wake.Seq(0)
			if i > 0 {
				want = places[2*i-1]
			}
			s.same("at the very time", want, before(r, minute(i)))
			s.same("a moment later", places[2*i+1], before(r, minute(i).Add(time.Microsecond)))
		}
		s.same("long before", wake.Seq(0), before(r, minute(-100)))
		s.same("long after", places[39], before(r, minute(100)))
	})
	s.update(func(t store.Tx) error { return t.DeleteApp(other.ID) })
	s.check(func(r store.Reader) {
		s.same("where some are gone", places[3], before(r, minute(3)))
		s.same("where none are", places[9], before(r, minute(5)))
	})
	s.prune(minute(10), 100)
	s.check(func(r store.Reader) {
		horizon := got[store.Log](s)(r.Log()).Horizon
		s.same("before the horizon", horizon, before(r, minute(3)))
		s.same("after it", places[27], before(r, minute(15)))
	})
}

func testSomeSubscriptionsTo(s *suite) {
	app, other := s.addApp(), s.addApp()
	c := s.addConversation(app.ID)
	var plain []wake.Subscription
	s.update(func(t store.Tx) error {
		plain = nil
		for i := range 5 {
			sub := s.subscription(c, "topic")
			sub.Event, sub.Arguments, sub.ExpiresAt = "", nil, start.Add(time.Duration(i)*time.Minute)
			if err := t.PutSubscription(sub); err != nil {
				return err
			}
			plain = append(plain, sub)
		}
		return nil
	})
	s.addSubscription(c, "topic") // to an event
	s.addSubscription(s.addConversation(other.ID), "topic")
	type subscriptions = []wake.Subscription
	s.change(func(t store.Tx) error { return fails(t.EndSubscription(plain[4].ID, 1, start)) }, func(r store.Reader) {
		some := func(limit int) subscriptions {
			return got[subscriptions](s)(r.SomeSubscriptionsTo(app.ID, "topic", limit))
		}
		s.same("the first ones", plain[:2], some(2))
		s.same("all, without the ended one", plain[:4], some(10))
		s.same("at most none", subscriptions{}, some(0))
		s.same("to another topic", subscriptions{}, got[subscriptions](s)(r.SomeSubscriptionsTo(app.ID, "other", 9)))
		count := func(app, topic string, at time.Time) int { return got[int](s)(r.CountSubscriptionsTo(app, topic, at)) }
		s.same("counted", 4, count(app.ID, "topic", start.Add(-1)))
		s.same("counted when two have expired", 2, count(app.ID, "topic", start.Add(time.Minute)))
		s.same("counted when all have", 0, count(app.ID, "topic", start.Add(time.Hour)))
		s.same("counted to another topic", 0, count(app.ID, "other", start))
		s.same("counted of the other app", 0, count(other.ID, "topic", start))
	})
}
