package storetest

import (
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func testTakers(s *suite) {
	app, other := s.addApp(), s.addApp()
	c := s.addConversation(app.ID)
	filter := wake.Filter{"level": []byte(`"high"`)}
	put := func(id, topic string, change func(*wake.Subscription)) wake.Subscription {
		sub := s.subscription(c, topic)
		sub.ID = id
		change(&sub)
		s.update(func(t store.Tx) error { return t.PutSubscription(sub) })
		return sub
	}
	put("event", "one", func(*wake.Subscription) {})
	put("plain", "one", func(sub *wake.Subscription) { sub.Event, sub.Arguments = "", nil })
	put("bob's", "one", func(sub *wake.Subscription) { sub.User = "bob" })
	put("another event", "one", func(sub *wake.Subscription) { sub.Event = "other" })
	put("claimed", "one", func(sub *wake.Subscription) { sub.Claimed = true })
	put("elsewhere", "two", func(*wake.Subscription) {})
	filtered := put("d", "one", func(sub *wake.Subscription) { sub.Filter = filter })
	once := put("b", "one", func(sub *wake.Subscription) { sub.Once = true })
	both := put("c", "one", func(sub *wake.Subscription) { sub.Once, sub.Filter, sub.Event = true, filter, "" })
	late := put("a", "one", func(sub *wake.Subscription) { sub.Once, sub.ExpiresAt = true, start.Add(-time.Hour) })
	ended := put("ended", "one", func(*wake.Subscription) {})
	endedOnce := put("e", "one", func(sub *wake.Subscription) { sub.Once = true })
	s.addSubscription(s.addConversation(other.ID), "one")

	s.change(func(t store.Tx) error {
		return do(
			func() error { return fails(t.EndSubscription(ended.ID, 1, start)) },
			func() error { return fails(t.EndSubscription(endedOnce.ID, 1, start)) },
		)
	}, func(r store.Reader) {
		count := func(event, to string, at time.Time, topics ...string) int {
			return got[int](s)(r.CountTakers(app.ID, topics, event, to, at))
		}
		s.same("takers of the event", 3, count("crawl.finished", "", start, "one"))
		s.same("of what is published", 1, count("", "", start, "one"))
		s.same("of bob's", 1, count("crawl.finished", "bob", start, "one"))
		s.same("of nobody's", 0, count("crawl.finished", "eve", start, "one"))
		s.same("on two topics, each once", 4, count("crawl.finished", "", start, "one", "two", "one"))
		s.same("when all have expired", 0, count("crawl.finished", "", start.Add(time.Hour), "one"))
		s.same("on a topic of nobody's", 0, count("crawl.finished", "", start, "three"))

		picky := func(after string, limit int) []wake.Subscription {
			return got[[]wake.Subscription](s)(r.PickySubscriptionsTo(app.ID, "one", after, limit))
		}
		s.same("picky ones", []wake.Subscription{late, once, both, filtered}, picky("", 10))
		s.same("the first two", []wake.Subscription{late, once}, picky("", 2))
		s.same("after those", []wake.Subscription{both, filtered}, picky(once.ID, 10))
		s.same("after the last", []wake.Subscription{}, picky(filtered.ID, 10))
	})
}

func testCrowds(s *suite) {
	app := s.addApp()
	c := s.addConversation(app.ID)
	ids := func(from, to int) func(store.Tx) error {
		return func(t store.Tx) error {
			for i := from; i < to; i++ {
				sub := s.subscription(c, "topic")
				sub.ID = fmt.Sprint(i)
				if err := t.PutSubscription(sub); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for from := 0; from < store.MostListed; from += 5000 {
		s.update(ids(from, from+5000))
	}
	s.check(func(r store.Reader) {
		s.same("as many as are listed", store.MostListed, len(got[[]wake.Subscription](s)(r.SubscriptionsTo(app.ID, []string{"topic"}))))
	})
	s.update(ids(store.MostListed, store.MostListed+1))
	s.view(func(r store.Reader) error {
		s.is("one more", store.ErrMany, fails(r.SubscriptionsTo(app.ID, []string{"topic", "other"})))
		s.same("another topic", []wake.Subscription{}, got[[]wake.Subscription](s)(r.SubscriptionsTo(app.ID, []string{"other"})))
		s.same("counted", store.MostListed+1, got[int](s)(r.CountTakers(app.ID, []string{"topic"}, "crawl.finished", "", start)))
		return nil
	})
	s.reopen()
	// Within a transaction the answer may come from memory a little longer; when it does not, the transaction goes on.
	s.update(func(t store.Tx) error {
		s.is("in a transaction", store.ErrMany, fails(t.SubscriptionsTo(app.ID, []string{"topic"})))
		return fails(t.EndSubscription("7", 1, start))
	})
	s.check(func(r store.Reader) {
		s.same("one less", store.MostListed, len(got[[]wake.Subscription](s)(r.SubscriptionsTo(app.ID, []string{"topic"}))))
	})
}
