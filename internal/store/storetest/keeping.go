package storetest

import (
	"strings"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func testPruneLog(s *suite) {
	app := s.addApp()
	var all []wake.Occurrence
	for i := range 10 {
		o := occurrence(app.ID, "topic")
		o.At = start.Add(time.Duration(i) * time.Minute)
		all = append(all, s.append(o))
	}
	ended := s.addSubscription(s.addConversation(app.ID), "topic")
	s.update(func(t store.Tx) error { return fails(t.EndSubscription(ended.ID, 1, start.Add(-time.Hour))) })
	prune := func(before time.Time, limit, want int) {
		s.Helper()
		s.update(func(t store.Tx) error {
			s.same("removed", want, got[int](s)(t.PruneLog(before, limit)))
			return nil
		})
	}
	prune(all[0].At, 5, 0)
	prune(all[8].At, 5, 5)
	prune(all[8].At, 5, 3)
	prune(all[8].At, 5, 0)
	s.check(func(r store.Reader) {
		s.same("the horizon", all[7].Seq, got[store.Log](s)(r.Log()).Horizon)
		s.same("what is left", all[8:], got[[]wake.Occurrence](s)(r.Occurrences(app.ID, []string{"topic"}, 0, 100)))
		s.same("what is no occurrence stays", ended.ID, got[wake.Subscription](s)(r.Subscription(ended.ID)).ID)
	})
	s.sound()
}

func testOldestOccurrences(s *suite) {
	app := s.addApp()
	var all []wake.Occurrence
	for i := range 4 {
		o := occurrence(app.ID, "topic")
		o.At = start.Add(time.Duration(i) * time.Minute)
		all = append(all, s.append(o))
	}
	oldest := func(before time.Time, limit int) []wake.Occurrence {
		var found []wake.Occurrence
		s.view(func(r store.Reader) error {
			found = got[[]wake.Occurrence](s)(r.OldestOccurrences(before, limit))
			return nil
		})
		return found
	}
	s.same("from before the first", []wake.Occurrence{}, oldest(start, 10))
	s.same("from before the third", all[:2], oldest(all[2].At, 10))
	s.same("at most three", all[:3], oldest(start.Add(time.Hour), 3))
	s.same("at most none", []wake.Occurrence{}, oldest(start.Add(time.Hour), 0))
	s.update(func(t store.Tx) error {
		last := occurrence(app.ID, "topic")
		last.Seq = got[wake.Seq](s)(t.Append(last))
		s.same("with one not written yet", append(all[:4:4], last), got[[]wake.Occurrence](s)(t.OldestOccurrences(start.Add(time.Hour), 10)))
		return nil
	})
}

func testSubscriptionsBehind(s *suite) {
	app := s.addApp()
	behind, ahead := s.addConversation(app.ID), s.addConversation(app.ID)
	first := s.addSubscription(behind, "topic")
	second := s.subscription(behind, "topic")
	second.From = 5
	late := s.subscription(behind, "topic")
	late.From = 10
	s.addSubscription(ahead, "topic")
	s.addSubscription(behind, "other")
	ended := s.addSubscription(behind, "topic")
	s.update(func(t store.Tx) error {
		return do(
			func() error { return t.PutSubscription(second) },
			func() error { return t.PutSubscription(late) },
			func() error { return fails(t.EndSubscription(ended.ID, 9, start)) },
			func() error { return t.Advance(behind.ID, 9) },
			func() error { return t.Advance(ahead.ID, 10) },
		)
	})
	s.check(func(r store.Reader) {
		of := func(seq wake.Seq, limit int) []wake.Subscription {
			return got[[]wake.Subscription](s)(r.SubscriptionsBehind(app.ID, "topic", seq, limit))
		}
		s.same("behind", []wake.Subscription{first, second}, of(10, 10))
		s.same("at most one", 1, len(of(10, 1)))
		s.same("of a place that both have reached", []wake.Subscription{}, of(9, 10))
	})
}

func testCounts(s *suite) {
	app, other := s.addApp(), s.addApp()
	c := s.addConversation(app.ID)
	s.addConversation(other.ID)
	s.addSubscription(c, "one")
	ended := s.addSubscription(c, "two")
	bobs := wake.Conversation{ID: "of bob", App: app.ID, User: "bob"}
	s.update(func(t store.Tx) error {
		return do(
			func() error { return t.PutConversation(bobs) },
			func() error { return fails(t.EndSubscription(ended.ID, 1, start)) },
		)
	})
	s.addSubscription(bobs, "one")
	s.check(func(r store.Reader) {
		s.same("of the user", 1, got[int](s)(r.CountSubscriptionsOfUser(app.ID, "ada")))
		s.same("of the user with the other app", 0, got[int](s)(r.CountSubscriptionsOfUser(other.ID, "ada")))
		s.same("of the app", 2, got[int](s)(r.CountSubscriptionsOfApp(app.ID)))
		s.same("conversations", 2, got[int](s)(r.CountConversations(app.ID)))
	})
}

func testSize(s *suite) {
	size := func() int64 { s.Helper(); return got[int64](s)(s.Size(s.Context())) }
	before := size()
	app := s.addApp()
	for range 100 {
		o := occurrence(app.ID, "topic")
		o.Data = []byte(`"` + strings.Repeat("a", 20_000) + `"`)
		s.append(o)
	}
	if grown := size() - before; before <= 0 || grown < 1_000_000 {
		s.Errorf("a database of %d bytes grew by %d, with 2,000,000 in it", before, grown)
	}
}

func testCheck(s *suite) {
	s.sound()
	app := s.addApp()
	c := s.addConversation(app.ID)
	s.addSubscription(c, "topic")
	s.queue(s.addWebhook(app.ID, "topic"), 3)
	for range 30 {
		s.append(occurrence(app.ID, "topic", "other"))
	}
	s.sound()
	s.reopen()
	s.prune(start.Add(time.Minute), 7)
	s.sound()
}
