package storetest

import (
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// owe writes an occurrence that these are owed until they have it, and queues it for the webhooks.
func (s *suite) owe(topic string, subs []wake.Subscription, hooks []wake.Webhook) wake.Occurrence {
	s.Helper()
	app := ""
	if len(subs) > 0 {
		app = subs[0].App
	} else {
		app = hooks[0].App
	}
	o := occurrence(app, topic)
	o.Key = s.id("key")
	s.update(func(t store.Tx) (err error) {
		if o.Seq, err = t.Append(o); err != nil {
			return err
		}
		for _, w := range hooks {
			if err := t.QueueDelivery(wake.Delivery{Webhook: w.ID, Seq: o.Seq, NextAt: start}); err != nil {
				return err
			}
		}
		return t.Owe(o.Seq, subs, hooks)
	})
	return o
}

// erased checks whether an occurrence's content is there still.
func (s *suite) erased(what string, o wake.Occurrence, gone bool) {
	s.Helper()
	want := o
	if gone {
		want = o.Erased()
	}
	s.check(func(r store.Reader) {
		s.same(what, want, got[wake.Occurrence](s)(r.Occurrence(o.Seq)))
		s.same(what+", by topic", want, got[[]wake.Occurrence](s)(r.Occurrences(o.App, o.Topics, o.Seq-1, 1))[0])
		s.same(what+", by key", want, got[wake.Occurrence](s)(r.OccurrenceOf(o.App, o.Event, o.Key)))
	})
}

func testOwe(s *suite) {
	app := s.addApp()
	ada, bob := s.addConversation(app.ID), s.addConversation(app.ID)
	adas, bobs := s.addSubscription(ada, "topic"), s.addSubscription(bob, "topic")
	hook := s.addWebhook(app.ID, "topic")
	plain := s.append(occurrence(app.ID, "topic"))
	o := s.owe("topic", []wake.Subscription{adas, bobs}, []wake.Webhook{hook})
	later := s.owe("topic", []wake.Subscription{adas}, nil)
	s.erased("owed to three", o, false)
	s.update(func(t store.Tx) error { return t.Advance(ada.ID, o.Seq-1) })
	s.erased("a conversation not there yet", o, false)
	s.update(func(t store.Tx) error { return t.Advance(ada.ID, o.Seq) })
	s.erased("owed to two", o, false)
	s.update(func(t store.Tx) error { return fails(t.FinishDelivery(wake.Delivery{Webhook: hook.ID, Seq: o.Seq})) })
	s.erased("owed to one", o, false)
	s.reopen()
	s.update(func(t store.Tx) error { return t.Advance(bob.ID, later.Seq) })
	s.erased("owed to nobody", o, true)
	s.erased("what comes after it", later, false)
	s.check(func(r store.Reader) {
		s.same("what nobody was to be owed", plain, got[wake.Occurrence](s)(r.Occurrence(plain.Seq)))
	})
}

// A webhook that comes later, in place of who was owed it, is owed it too.
func testOweToo(s *suite) {
	app := s.addApp()
	sub := s.addSubscription(s.addConversation(app.ID), "topic")
	fleeting, plain := s.owe("topic", []wake.Subscription{sub}, nil), s.append(occurrence(app.ID, "topic"))
	hook := s.addWebhook(app.ID, "topic")
	s.update(func(t store.Tx) error {
		sub.Claimed = true
		return do(
			func() error {
				return t.QueueDelivery(wake.Delivery{Webhook: hook.ID, Seq: fleeting.Seq, NextAt: start})
			},
			func() error { return t.QueueDelivery(wake.Delivery{Webhook: hook.ID, Seq: plain.Seq, NextAt: start}) },
			func() error { return t.PutSubscription(sub) },
		)
	})
	s.erased("owed to the webhook", fleeting, false)
	for _, d := range s.claim(start, 10, 10) {
		s.update(func(t store.Tx) error { return fails(t.FinishDelivery(d)) })
	}
	s.erased("delivered", fleeting, true)
	s.check(func(r store.Reader) {
		s.same("what is not fleeting", plain, got[wake.Occurrence](s)(r.Occurrence(plain.Seq)))
	})
}

// Whatever ends a claim to an occurrence releases it.
func testReleases(s *suite) {
	app := s.addApp()
	c := s.addConversation(app.ID)
	o := s.owe("topic", []wake.Subscription{s.addSubscription(c, "topic")}, []wake.Webhook{s.addWebhook(app.ID, "topic")})
	held := func(sub wake.Subscription, release func(t store.Tx) error) {
		s.Helper()
		o := s.owe("topic", []wake.Subscription{sub}, nil)
		s.erased("owed still", o, false)
		s.update(release)
		s.erased("released", o, true)
	}
	ending := s.addSubscription(c, "topic")
	held(ending, func(t store.Tx) error { return fails(t.EndSubscription(ending.ID, o.Seq, start)) })
	claimed := s.addSubscription(c, "topic")
	held(claimed, func(t store.Tx) error {
		claimed.Claimed = true
		return t.PutSubscription(claimed)
	})
	hook := s.addWebhook(app.ID, "topic")
	hooked := s.owe("topic", nil, []wake.Webhook{hook})
	s.update(func(t store.Tx) error { return fails(t.DeleteWebhook(hook.ID)) })
	s.erased("with the webhook", hooked, true)

	once := s.addSubscription(c, "topic")
	s.update(func(t store.Tx) error { return fails(t.EndSubscription(once.ID, o.Seq+100, start)) })
	last := s.owe("topic", []wake.Subscription{once}, nil)
	s.erased("to one that ended by it", last, false)
	s.update(func(t store.Tx) error { return t.Advance(c.ID, last.Seq) })
	s.erased("to one that ended by it, and has it", last, true)
	s.erased("a webhook's that was not delivered", o, false)
	s.update(func(t store.Tx) error { return t.DeleteApp(app.ID) })
	s.check(func(r store.Reader) { s.is("with the app", store.ErrNotFound, fails(r.Occurrence(o.Seq))) })
	s.sound()
}

// What is owed goes with what retention removes.
func testPruneOwed(s *suite) {
	app := s.addApp()
	c := s.addConversation(app.ID)
	sub := s.addSubscription(c, "topic")
	s.owe("topic", []wake.Subscription{sub}, nil)
	ended := s.addSubscription(c, "topic")
	s.update(func(t store.Tx) error { return fails(t.EndSubscription(ended.ID, 100, start)) })
	young := occurrence(app.ID, "topic")
	young.At = start.Add(time.Hour)
	young = s.append(young)
	s.prune(start.Add(time.Minute), 10)
	s.sound()
	s.check(func(r store.Reader) {
		s.same("what is left", []wake.Occurrence{young}, got[[]wake.Occurrence](s)(r.Occurrences(app.ID, []string{"topic"}, 0, 10)))
	})
	s.update(func(t store.Tx) error { return t.Advance(c.ID, young.Seq) })
	s.check(func(r store.Reader) {
		s.same("what was never fleeting", young, got[wake.Occurrence](s)(r.Occurrence(young.Seq)))
	})
}

func testErasures(s *suite) {
	app := s.addApp()
	c := s.addConversation(app.ID)
	sub := s.addSubscription(c, "topic")
	erasures := func(r store.Reader) store.Erasures { return got[store.Erasures](s)(r.Erasures()) }
	s.check(func(r store.Reader) { s.same("none", store.Erasures{}, erasures(r)) })
	o := s.owe("topic", []wake.Subscription{sub}, nil)
	s.check(func(r store.Reader) { s.same("none yet", store.Erasures{}, erasures(r)) })
	s.update(func(t store.Tx) error { return t.Advance(c.ID, o.Seq) })
	s.change(func(t store.Tx) error { return t.NoteScrubbed(0) }, func(r store.Reader) { s.same("one", store.Erasures{Made: 1}, erasures(r)) })
	scrubbed := func(r store.Reader) { s.same("scrubbed", store.Erasures{Made: 1, Scrubbed: 1}, erasures(r)) }
	s.change(func(t store.Tx) error { return t.NoteScrubbed(1) }, scrubbed)
	s.change(func(t store.Tx) error { return t.NoteScrubbed(0) }, scrubbed)
	s.reopen()
	s.check(scrubbed)
}

// sound fails the test when the store finds anything wrong with itself.
func (s *suite) sound() {
	s.Helper()
	problems, err := s.Check(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	s.same("problems", []store.Problem{}, problems)
}
