package postgres

import (
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (r *reader) CountSubscriptions(conversation string) (int, error) {
	n, err := r.q.CountSubscriptions(background, conversation)
	return int(n), r.fault(err)
}

func (r *reader) CountSubscriptionsTo(app, topic string, at time.Time) (int, error) {
	n, err := r.q.CountSubscriptionsTo(background, queries.CountSubscriptionsToParams{App: app, Topic: []byte(topic), At: micros(at)})
	return int(n), r.fault(err)
}

// few returns [store.ErrMany] when one of the topics has more live subscriptions than are listed.
func (r *reader) few(app string, topics []string) error {
	for _, topic := range topics {
		n, err := r.q.CountSubscriptionsUpTo(background, queries.CountSubscriptionsUpToParams{
			App: app, Topic: []byte(topic), Max: store.MostListed + 1,
		})
		if err != nil {
			return r.fault(err)
		}
		if n > store.MostListed {
			return store.ErrMany
		}
	}
	return nil
}

func (r *reader) CountTakers(app string, topics []string, event, to string, at time.Time) (int, error) {
	n, err := r.q.CountTakers(background, queries.CountTakersParams{
		App: app, Topics: raw(topics), Event: event, Recipient: to, At: micros(at),
	})
	return int(n), r.fault(err)
}

func (r *reader) PickySubscriptionsTo(app, topic, after string, limit int) ([]wake.Subscription, error) {
	rows, err := r.q.PickySubscriptionsTo(background, queries.PickySubscriptionsToParams{
		App: app, Topic: []byte(topic), After: after, Max: most(limit),
	})
	return convert(rows, r.fault(err), toSubscription)
}

func (r *reader) SomeSubscriptionsTo(app, topic string, limit int) ([]wake.Subscription, error) {
	rows, err := r.q.SomeSubscriptionsTo(background, queries.SomeSubscriptionsToParams{App: app, Topic: []byte(topic), Max: most(limit)})
	return convert(rows, r.fault(err), toSubscription)
}

func (r *reader) SubscriptionsBehind(app, topic string, seq wake.Seq, limit int) ([]wake.Subscription, error) {
	rows, err := r.q.SubscriptionsBehind(background, queries.SubscriptionsBehindParams{
		App: app, Topic: []byte(topic), Looked: store.MostListed, Seq: int64(seq), Max: most(limit),
	})
	return convert(rows, r.fault(err), toSubscription)
}

func (r *reader) CountSubscriptionsOfUser(app, user string) (int, error) {
	n, err := r.q.CountSubscriptionsOfUser(background, queries.CountSubscriptionsOfUserParams{App: app, UserID: user})
	return int(n), r.fault(err)
}

func (r *reader) CountSubscriptionsOfApp(app string) (int, error) {
	n, err := r.q.CountSubscriptionsOfApp(background, app)
	return int(n), r.fault(err)
}

func (r *reader) CountConversations(app string) (int, error) {
	n, err := r.q.CountConversations(background, app)
	return int(n), r.fault(err)
}
