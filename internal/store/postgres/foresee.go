package postgres

import (
	"cmp"
	"slices"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/group"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
	"github.com/rouse-dev/rouse/internal/store/topiccache"
	"github.com/rouse-dev/rouse/internal/wake"
)

var _ group.Foreseer = (*writer)(nil)

// Foresee implements [group.Foreseer]: who is on the topics that are not at hand is asked for all of them in one exchange, where each
// update would wait for its own.
func (w *writer) Foresee(topics []store.Topics) error {
	for app, names := range w.unknown(topics) {
		if len(names) < 2 {
			continue
		}
		if err := w.foreseeSubscriptions(app, names); err != nil {
			return err
		}
		if err := w.foreseeWebhooks(app, names); err != nil {
			return err
		}
	}
	return nil
}

// unknown are the topics that are not at hand, each once, by app.
func (w *writer) unknown(topics []store.Topics) map[string][]string {
	names := map[string][]string{}
	seen := map[topicKey]bool{}
	for _, t := range topics {
		for _, name := range t.Topics {
			key := topicKey{t.App, name}
			if seen[key] || w.cache.subscriptions.Holds(key) && w.cache.webhooks.Holds(key) {
				continue
			}
			seen[key] = true
			names[t.App] = append(names[t.App], name)
		}
	}
	return names
}

// fewRows is how many rows of a topic are foreseen on average. Where there are more they are left to be asked for one topic
// at a time, which tells topics with too many to list.
const fewRows = 16

func (w *writer) foreseeSubscriptions(app string, names []string) error {
	most := min(fewRows*len(names), store.MostListed)
	rows, err := w.reader.q.ForeseenSubscriptions(background, queries.ForeseenSubscriptionsParams{App: app, Topics: raw(names), Max: int32(most)})
	if err != nil || len(rows) == most {
		return w.reader.fault(err)
	}
	slices.SortFunc(rows, func(a, b queries.Subscription) int { return cmp.Compare(a.N, b.N) })
	return keep(w.cache.subscriptions, app, names, rows, func(r queries.Subscription) string { return string(r.Topic) },
		func(rows []queries.Subscription) (*topiccache.Rows[wake.Subscription], error) {
			return topiccache.InOrder(rows, toSubscription, func(r queries.Subscription) int64 { return r.N })
		})
}

func (w *writer) foreseeWebhooks(app string, names []string) error {
	rows, err := w.reader.q.WebhooksTo(background, queries.WebhooksToParams{App: app, Topics: raw(names)})
	if err != nil {
		return w.reader.fault(err)
	}
	return keep(w.cache.webhooks, app, names, rows, func(r queries.Webhook) string { return string(r.Topic) },
		func(rows []queries.Webhook) (*topiccache.Rows[wake.Webhook], error) {
			return topiccache.InOrder(rows, toWebhook, func(r queries.Webhook) int64 { return r.N })
		})
}

// keep puts what was found on each of the topics at hand, that nobody is on one too.
func keep[R, T any](cache *topiccache.Cache[topicKey, T], app string, names []string, rows []R, topic func(R) string,
	inOrder func([]R) (*topiccache.Rows[T], error)) error {
	on := make(map[string][]R, len(names))
	for _, row := range rows {
		on[topic(row)] = append(on[topic(row)], row)
	}
	for _, name := range names {
		if _, err := cache.Get(topicKey{app, name}, func(topicKey) (*topiccache.Rows[T], error) { return inOrder(on[name]) }); err != nil {
			return err
		}
	}
	return nil
}
