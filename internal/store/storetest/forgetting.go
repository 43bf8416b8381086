package storetest

import (
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// forget forgets a user until nothing is left, and returns how much that was, of how many conversations, in how many steps.
func (s *suite) forget(app, user string, limit int) (removed, conversations, steps int) {
	s.Helper()
	for more := true; more; steps++ {
		var f store.Forgotten
		s.update(func(t store.Tx) error {
			f = got[store.Forgotten](s)(t.Forget(app, user, limit))
			return nil
		})
		removed, conversations, more = removed+f.Removed, conversations+len(f.Conversations), f.More
		want := []store.Person{}
		if more {
			want = append(want, store.Person{App: app, User: user})
		}
		s.check(func(r store.Reader) { s.same("being forgotten", want, got[[]store.Person](s)(r.Forgetting())) })
		if steps == 1000 {
			s.Fatal("Forget always says that there is more")
		}
	}
	return removed, conversations, steps
}

func testForget(s *suite) {
	app, other := s.addApp(), s.addApp()
	c := s.addConversation(app.ID) // of ada
	sub := s.addSubscription(c, "topic")
	mine := s.addWebhook(app.ID, "topic")
	s.queue(mine, 2)
	voucher := wake.Webhook{ID: "by voucher", App: app.ID, Principal: wake.VoucherPrincipal(sub.ID), Event: "e", Topic: "topic", ExpiresAt: start.Add(time.Hour)}
	bobs := wake.Conversation{ID: "of bob", App: app.ID, User: "bob", CreatedAt: start, SeenAt: start}
	elsewhere := s.addConversation(other.ID)
	var said, personal, private, both, fleeting wake.Occurrence
	s.update(func(t store.Tx) error {
		said, personal, private, both = occurrence(app.ID, c.Topic()), occurrence(app.ID, "topic", "more"), occurrence(app.ID, "u/ada/x"), occurrence(app.ID, "u/ada/x", "topic")
		personal.To, personal.Key = "ada", "personal"
		fleeting = occurrence(app.ID, "topic")
		for _, o := range []*wake.Occurrence{&said, &personal, &private, &both, &fleeting} {
			o.Seq = got[wake.Seq](s)(t.Append(*o))
		}
		return do(
			func() error { return t.Owe(fleeting.Seq, []wake.Subscription{sub}, nil) },
			func() error { return t.PutWebhook(voucher) },
			func() error { return t.PutConversation(bobs) },
			func() error {
				return t.QueueDelivery(wake.Delivery{Webhook: voucher.ID, Seq: personal.Seq, NextAt: start})
			},
			func() error { return t.PutPublishURL(wake.PublishURL{ID: "to", App: app.ID, Event: "e", To: "ada"}) },
			func() error { return t.PutPublishURL(wake.PublishURL{ID: "from", App: app.ID, Topic: "u/ada/x"}) },
			func() error { return t.PutPublishURL(wake.PublishURL{ID: "kept", App: app.ID, Topic: "topic"}) },
			func() error {
				return t.CreateWorkspace(wake.Workspace{ID: "workspace", App: app.ID, User: "ada", CreatedAt: start})
			},
		)
	})
	neighbours := occurrence(app.ID, "u/ada2/x", "u/ad/x", "topic")
	neighbours.To = "bob"
	neighbours = s.append(neighbours)

	if removed, conversations, _ := s.forget(app.ID, "ada", 1000); removed == 0 || conversations != 1 {
		s.Errorf("removed %d, of %d conversations", removed, conversations)
	}
	both.Topics = []string{"topic"}
	check := func(r store.Reader) {
		s.is("conversation", store.ErrNotFound, fails(r.Conversation(c.ID)))
		s.is("by its thread", store.ErrNotFound, fails(r.ConversationOf(app.ID, c.Kind(), "ada", c.Thread)))
		s.is("subscription", store.ErrNotFound, fails(r.Subscription(sub.ID)))
		s.same("subscriptions to", []wake.Subscription{}, got[[]wake.Subscription](s)(r.SubscriptionsTo(app.ID, []string{"topic"})))
		s.is("webhook", store.ErrNotFound, fails(r.Webhook(mine.ID)))
		s.is("voucher's webhook", store.ErrNotFound, fails(r.Webhook(voucher.ID)))
		for _, o := range []wake.Occurrence{said, personal, private} {
			s.is("occurrence on "+o.Topics[0], store.ErrNotFound, fails(r.Occurrence(o.Seq)))
			s.same("on "+o.Topics[0], false, containsSeq(got[[]wake.Occurrence](s)(r.Occurrences(app.ID, o.Topics, 0, 100)), o.Seq))
		}
		s.is("by its key", store.ErrNotFound, fails(r.OccurrenceOf(app.ID, personal.Event, "personal")))
		s.same("what others were published too", both, got[wake.Occurrence](s)(r.Occurrence(both.Seq)))
		s.same("what the user alone was owed", fleeting.Erased(), got[wake.Occurrence](s)(r.Occurrence(fleeting.Seq)))
		s.same("on the user's topic", []wake.Occurrence{}, got[[]wake.Occurrence](s)(r.Occurrences(app.ID, []string{"u/ada/x"}, 0, 100)))
		s.same("on the other", []wake.Occurrence{both, fleeting.Erased(), neighbours}, got[[]wake.Occurrence](s)(r.Occurrences(app.ID, []string{"topic"}, said.Seq-1, 100)))
		s.same("of others", []wake.Occurrence{neighbours}, got[[]wake.Occurrence](s)(r.Occurrences(app.ID, []string{"u/ada2/x", "u/ad/x"}, 0, 100)))
		s.is("URL to", store.ErrNotFound, fails(r.PublishURL("to")))
		s.is("URL from", store.ErrNotFound, fails(r.PublishURL("from")))
		s.same("URLs", 1, got[int](s)(r.CountPublishURLs(app.ID)))
		s.is("workspace", store.ErrNotFound, fails(r.Workspace("workspace")))
		s.same("bob's conversation", bobs, got[wake.Conversation](s)(r.Conversation(bobs.ID)))
		s.same("another app's", elsewhere, got[wake.Conversation](s)(r.Conversation(elsewhere.ID)))
		if e := got[store.Erasures](s)(r.Erasures()); e.Made == 0 {
			s.Error("nothing is to be scrubbed")
		}
	}
	s.check(check)
	s.reopen()
	s.check(check)
	s.sound()
	s.same("deliveries left", []wake.Delivery{}, s.claim(start.Add(time.Hour), 10, 10))

	before := got[store.Erasures](s)(s.erasures())
	for _, user := range []string{"ada", "nobody", ""} {
		removed, _, _ := s.forget(app.ID, user, 10)
		s.same("removed of "+user, 0, removed)
	}
	if removed, _, _ := s.forget("no app", "bob", 10); removed != 0 {
		s.Error("something was removed of an app that is not there")
	}
	s.same("erasures, with nothing removed", before, got[store.Erasures](s)(s.erasures()))
}

func (s *suite) erasures() (e store.Erasures, err error) {
	err = s.View(s.Context(), func(r store.Reader) (err error) {
		e, err = r.Erasures()
		return err
	})
	return e, err
}

func containsSeq(all []wake.Occurrence, seq wake.Seq) bool {
	for _, o := range all {
		if o.Seq == seq {
			return true
		}
	}
	return false
}

// appendMixed writes 150 occurrences, most of them to ada and some on another topic too, and returns those for everybody.
func (s *suite) appendMixed(t store.Tx, app, other string) (everybodys []wake.Occurrence) {
	for i := range 150 {
		o := occurrence(app, "topic", fmt.Sprintf("u/ada/%d", i%3))
		o.To = "ada"
		if i%10 == 0 {
			o.To, o.Topics = "", []string{"topic"}
		}
		if o.Seq = got[wake.Seq](s)(t.Append(o)); o.To == "" {
			everybodys = append(everybodys, o)
		}
		if i%2 == 0 {
			got[wake.Seq](s)(t.Append(occurrence(app, other)))
		}
	}
	return everybodys
}

// A user with much is forgotten in steps, which others and a restart may come between.
func testForgetInSteps(s *suite) {
	app := s.addApp()
	c := s.addConversation(app.ID)
	s.addSubscription(c, "topic")
	var kept []wake.Occurrence
	for half := range 2 {
		s.update(func(t store.Tx) error {
			kept = append(kept[:15*half], s.appendMixed(t, app.ID, c.Topic())...)
			return nil
		})
		s.reopen() // so that not all of the log is in memory
	}
	var first store.Forgotten
	s.update(func(t store.Tx) error {
		first = got[store.Forgotten](s)(t.Forget(app.ID, "ada", 20))
		return nil
	})
	s.same("more", true, first.More)
	s.reopen()
	if _, conversations, steps := s.forget(app.ID, "ada", 20); steps < 10 || conversations != 1 {
		s.Errorf("forgotten in %d steps, with %d conversations", steps, conversations)
	}
	s.check(func(r store.Reader) {
		s.same("what is left", kept, got[[]wake.Occurrence](s)(r.Occurrences(app.ID, []string{"topic", "u/ada/0", "u/ada/1"}, 0, 1000)))
	})
	s.sound()
	if next := s.append(occurrence(app.ID, "topic")); next.Seq <= kept[len(kept)-1].Seq {
		s.Errorf("place %d given again", next.Seq)
	}
}
