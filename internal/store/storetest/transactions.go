package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

var errOnPurpose = errors.New("on purpose")

// spoil changes something of everything; none of it must stay.
func (s *suite) spoil(t store.Tx, c wake.Conversation, w wake.Webhook, delete string) {
	s.is("spoil", nil, do(
		func() error { return t.CreateApp(wake.App{ID: "spoilt"}) },
		func() error { return fails(t.PutManifest(c.App, []byte(`{"spoilt":true}`))) },
		func() error { return t.Advance(c.ID, 99) },
		func() error { return t.PutSubscription(s.subscription(c, "topic")) },
		func() error { return fails(t.DeleteWebhook(w.ID)) },
		func() error { return fails(t.Append(occurrence(c.App, "topic"))) },
		func() error { return t.DeleteApp(delete) },
	))
	// What the transaction sees of itself must not be remembered either.
	s.same("subscriptions within", 1, len(got[[]wake.Subscription](s)(t.SubscriptionsTo(c.App, []string{"topic"}))))
	s.same("webhooks within", 0, len(got[[]wake.Webhook](s)(t.WebhooksTo(c.App, []string{"topic"}))))
	s.same("occurrences within", 1, len(got[[]wake.Occurrence](s)(t.Occurrences(c.App, []string{"topic"}, 0, 10))))
}

// unspoilt sets the stage for spoil and returns it with a check that nothing of it stayed.
func (s *suite) unspoilt() (spoil func(store.Tx), check func()) {
	c := s.addConversation(s.addApp().ID)
	w := s.addWebhook(c.App, "topic")
	other := s.addApp()
	spoil = func(t store.Tx) { s.spoil(t, c, w, other.ID) }
	read := func(r store.Reader) {
		s.is("the app", store.ErrNotFound, fails(r.App("spoilt")))
		s.same("the manifest's version", int64(0), got[int64](s)(r.ManifestVersion(c.App)))
		s.same("the conversation", c, got[wake.Conversation](s)(r.Conversation(c.ID)))
		s.same("subscriptions", []wake.Subscription{}, got[[]wake.Subscription](s)(r.SubscriptionsTo(c.App, []string{"topic"})))
		s.same("webhooks", []wake.Webhook{w}, got[[]wake.Webhook](s)(r.WebhooksTo(c.App, []string{"topic"})))
		s.same("occurrences", []wake.Occurrence{}, got[[]wake.Occurrence](s)(r.Occurrences(c.App, []string{"topic"}, 0, 10)))
		s.is("the occurrence", store.ErrNotFound, fails(r.Occurrence(1)))
		s.same("the log's head", wake.Seq(0), got[store.Log](s)(r.Log()).Head)
		s.same("the app that was deleted", other, got[wake.App](s)(r.App(other.ID)))
	}
	return spoil, func() {
		s.check(read)
		s.append(occurrence(other.ID, "topic")) // another occurrence in that place is not the lost one
		s.check(func(r store.Reader) {
			s.same("occurrences", []wake.Occurrence{}, got[[]wake.Occurrence](s)(r.Occurrences(c.App, []string{"topic"}, 0, 10)))
		})
	}
}

func testFailure(s *suite) {
	spoil, check := s.unspoilt()
	err := s.Update(s.Context(), func(t store.Tx) error {
		spoil(t)
		return fmt.Errorf("it failed %w", errOnPurpose)
	})
	s.is("the function's own error", errOnPurpose, err)
	check()
	s.is("a view's own error", errOnPurpose, s.View(s.Context(), func(store.Reader) error { return errOnPurpose }))
}

// testNeighbours lets transactions that fail run among others that must be kept: in a shared commit or not.
func testNeighbours(s *suite) {
	const callers = 90
	app := s.addApp()
	for round := range 5 {
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i := range callers {
			all.Go(func() {
				<-begin
				o := occurrence(app.ID, "topic")
				o.Key = fmt.Sprintf("%d/%d", round, i)
				err := s.Update(s.Context(), func(t store.Tx) error {
					if i%3 == 1 {
						return errOnPurpose
					}
					if _, err := t.Append(o); err != nil || i%3 == 0 {
						return err
					}
					return errOnPurpose
				})
				if i%3 == 0 {
					s.is("one that is kept", nil, err)
				} else {
					s.is("one that fails", errOnPurpose, err)
				}
			})
		}
		close(begin)
		all.Wait()
		s.check(func(r store.Reader) {
			for i := range callers {
				_, err := r.OccurrenceOf(app.ID, "crawl.finished", fmt.Sprintf("%d/%d", round, i))
				if i%3 == 0 {
					s.is(fmt.Sprintf("occurrence %d", i), nil, err)
				} else {
					s.is(fmt.Sprintf("occurrence %d", i), store.ErrNotFound, err)
				}
			}
			want := (round + 1) * callers / 3
			s.same("occurrences", want, len(got[[]wake.Occurrence](s)(r.Occurrences(app.ID, []string{"topic"}, 0, 10*callers))))
		})
	}
}

func testPanic(s *suite) {
	spoil, check := s.unspoilt()
	func() {
		defer func() {
			if recover() == nil {
				s.Error("a panic in the function did not come out of Update")
			}
		}()
		_ = s.Update(s.Context(), func(t store.Tx) error {
			spoil(t)
			panic("on purpose")
		})
	}()
	check()
	func() {
		defer func() { s.same("what a view's function panicked with", any("on purpose"), recover()) }()
		_ = s.View(s.Context(), func(store.Reader) error { panic("on purpose") })
	}()
}

// testGoexit ends the goroutine within the function, as a test does that fails there.
func testGoexit(s *suite) {
	spoil, check := s.unspoilt()
	var all sync.WaitGroup
	all.Go(func() {
		_ = s.Update(s.Context(), func(t store.Tx) error {
			spoil(t)
			runtime.Goexit()
			return nil
		})
		s.Error("Update returned")
	})
	all.Wait()
	check()
}

func testContexts(s *suite) {
	ended, cancel := context.WithCancel(s.Context())
	cancel()
	never := func() error { s.Error("ran although its context had ended"); return nil }
	s.is("Update", context.Canceled, s.Update(ended, func(store.Tx) error { return never() }))
	s.is("View", context.Canceled, s.View(ended, func(store.Reader) error { return never() }))
	s.is("Spend", context.Canceled, fails(s.Spend(ended, "scope", "id", start.Add(24*365*time.Hour))))
	s.same("what was not spent", true, got[bool](s)(s.Spend(s.Context(), "scope", "id", time.Now().Add(time.Hour))))

	// Once it has begun, a transaction is not undone.
	running, cancel := context.WithCancel(s.Context())
	s.is("a transaction whose context ends", nil, s.Update(running, func(t store.Tx) error {
		cancel()
		return t.CreateApp(wake.App{ID: "kept", CreatedAt: start})
	}))
	s.check(func(r store.Reader) { s.is("what it did", nil, fails(r.App("kept"))) })
}

func testSnapshot(s *suite) {
	app := s.addApp()
	first := s.append(occurrence(app.ID, "topic"))
	s.view(func(r store.Reader) error {
		c := s.addConversation(app.ID)
		s.addSubscription(c, "topic")
		s.append(occurrence(app.ID, "topic"))
		s.update(func(t store.Tx) error { return fails(t.PutManifest(app.ID, []byte(`{}`))) })

		s.is("a later conversation", store.ErrNotFound, fails(r.Conversation(c.ID)))
		s.same("later subscriptions", 0, len(got[[]wake.Subscription](s)(r.SubscriptionsTo(app.ID, []string{"topic"}))))
		s.same("a later manifest", int64(0), got[int64](s)(r.ManifestVersion(app.ID)))
		s.same("the log's head", first.Seq, got[store.Log](s)(r.Log()).Head)
		s.is("a later occurrence", store.ErrNotFound, fails(r.Occurrence(first.Seq+1)))
		s.same("later occurrences", []wake.Occurrence{first}, got[[]wake.Occurrence](s)(r.Occurrences(app.ID, []string{"topic"}, 0, 10)))
		return nil
	})
	s.view(func(r store.Reader) error {
		s.same("a view sees what was committed before", first.Seq+1, got[store.Log](s)(r.Log()).Head)
		return nil
	})
}

func testClose(s *suite) {
	app := s.addApp()
	// Close waits for what has begun.
	begun := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		err := s.View(s.Context(), func(r store.Reader) error {
			close(begun)
			for range 100 {
				s.is("reading while the store closes", nil, fails(r.App(app.ID)))
			}
			return nil
		})
		s.is("a view that has begun", nil, err)
	})
	<-begun
	s.is("Close", nil, s.Close())
	all.Wait()

	never := func() error { s.Error("ran in a closed store"); return nil }
	s.is("Update", store.ErrClosed, s.Update(s.Context(), func(store.Tx) error { return never() }))
	s.is("View", store.ErrClosed, s.View(s.Context(), func(store.Reader) error { return never() }))
	s.is("Spend", store.ErrClosed, fails(s.Spend(s.Context(), "scope", "id", time.Now().Add(time.Hour))))
	s.is("Close again", nil, s.Close())
}
