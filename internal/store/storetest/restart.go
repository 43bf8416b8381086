package storetest

import (
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// testRestart fills a store with some of everything and finds it again after a restart.
func testRestart(s *suite) {
	app := s.addApp()
	c := s.addConversation(app.ID)
	sub := s.addSubscription(c, "topic")
	ended := s.addSubscription(c, "topic")
	w := s.addWebhook(app.ID, "topic")
	queued := s.queue(w, 2)
	key := wake.Key{ID: "key", App: app.ID, Name: "laptop", Public: []byte{1, 2, 3}, CreatedAt: start}
	o := occurrence(app.ID, "topic", "other")
	o.Key = "k"
	o = s.append(o)
	var version int64
	s.update(func(t store.Tx) (err error) {
		if version, err = t.PutManifest(app.ID, []byte(`{"events":[]}`)); err != nil {
			return err
		}
		return do(
			func() error { return t.CreateKey(key) },
			func() error { return t.Advance(c.ID, 2) },
			func() error { return fails(t.EndSubscription(ended.ID, 3, start)) },
		)
	})
	c.Position = 2
	ended.Until, ended.EndedAt = 3, start
	var log store.Log
	s.view(func(r store.Reader) (err error) {
		log, err = r.Log()
		return err
	})

	there := func(r store.Reader) {
		s.same("the log", log, got[store.Log](s)(r.Log()))
		s.same("the app", []wake.App{app}, got[[]wake.App](s)(r.Apps()))
		s.same("the key", []wake.Key{key}, got[[]wake.Key](s)(r.Keys(app.ID)))
		s.same("the manifest", store.Manifest{Version: version, Body: []byte(`{"events":[]}`)}, got[store.Manifest](s)(r.Manifest(app.ID)))
		s.same("its version", version, got[int64](s)(r.ManifestVersion(app.ID)))
		s.same("the conversation", c, got[wake.Conversation](s)(r.ConversationOf(app.ID, c.Kind(), c.User, c.Thread)))
		s.same("the subscriptions", []wake.Subscription{sub, ended}, got[[]wake.Subscription](s)(r.SubscriptionsOf(c.ID)))
		s.same("the live one", []wake.Subscription{sub}, got[[]wake.Subscription](s)(r.SubscriptionsTo(app.ID, []string{"topic"})))
		s.same("the webhook", []wake.Webhook{w}, got[[]wake.Webhook](s)(r.WebhooksTo(app.ID, []string{"topic"})))
		s.same("the occurrence", o, got[wake.Occurrence](s)(r.OccurrenceOf(app.ID, o.Event, "k")))
		s.same("on its other topic", []wake.Occurrence{o}, got[[]wake.Occurrence](s)(r.Occurrences(app.ID, []string{"other"}, 0, 10)))
		s.same("on the topic", 3, len(got[[]wake.Occurrence](s)(r.Occurrences(app.ID, []string{"topic"}, 0, 10))))
	}
	s.check(there)
	s.reopen()
	s.check(there)
	s.due("the first delivery", queued[0].NextAt)
	if next := s.append(occurrence(app.ID, "topic")); next.Seq != o.Seq+1 {
		s.Errorf("the log goes on at place %d, want %d", next.Seq, o.Seq+1)
	}
}
