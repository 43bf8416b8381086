package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// testForeseen has updates say beforehand on which topics they will look, many at once: what they are told is what they would be
// told otherwise, whoever comes and goes meanwhile.
func testForeseen(s *suite) {
	const topics, callers, rounds = 40, 8, 30
	app, other := s.addApp(), s.addApp()
	name := func(i int) string { return fmt.Sprintf("topic/%d", i%topics) }
	conversation := s.addConversation(app.ID)
	own := make([]wake.Subscription, topics)
	for i := range own {
		if i%3 == 0 {
			s.addWebhook(app.ID, name(i))
		}
		own[i] = s.addSubscription(conversation, name(i))
	}
	s.addWebhook(other.ID, name(0))
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for round := range rounds {
				i := (caller*rounds + round) * 7 % topics
				asked := []string{name(i), name(i + 1), "nobody/" + name(i)}
				s.updateForeseen(app.ID, asked, func(t store.Tx) error {
					subs := got[[]wake.Subscription](s)(t.SubscriptionsTo(app.ID, asked))
					hooks := got[[]wake.Webhook](s)(t.WebhooksTo(app.ID, asked))
					want := 0
					for _, j := range []int{i, (i + 1) % topics} {
						if j%3 == 0 {
							want++
						}
					}
					if len(subs) != 2 || len(hooks) != want {
						s.Errorf("on %q there are %d subscriptions and %d webhooks, want 2 and %d", asked, len(subs), len(hooks), want)
					}
					// One ends and comes back within the update: whoever comes after must see both.
					gone := own[i]
					if !got[bool](s)(t.EndSubscription(gone.ID, 0, start.Add(time.Second))) {
						s.Errorf("%s had ended", gone.ID)
					}
					s.same("without the one that ended", 1, len(got[[]wake.Subscription](s)(t.SubscriptionsTo(app.ID, asked))))
					return t.PutSubscription(gone)
				})
			}
		})
	}
	all.Wait()
}

func (s *suite) updateForeseen(app string, topics []string, f func(store.Tx) error) {
	s.Helper()
	if err := s.Update(store.WithTopics(s.Context(), app, topics), f); err != nil {
		s.Errorf("update: %v", err)
	}
}
