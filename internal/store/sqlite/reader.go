package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
	"github.com/rouse-dev/rouse/internal/store/topiccache"
	"github.com/rouse-dev/rouse/internal/wake"
)

// background is the context of every statement. A statement is short and bounded, the driver pays for each context that can
// end with a goroutine, and a transaction that has begun is not to be interrupted; calls watch their context before.
var background = context.Background()

// A reader reads through one connection: a view's snapshot, or the writer's transaction.
type reader struct {
	q    *queries.Queries
	tail *tail
	// state is the part of the log that this reader sees.
	state queries.Log
	// spoil is told of a failure after which the transaction cannot go on; nil in a view.
	spoil func(error)
}

// fault maps an error of the database, see the function of that name.
func (r *reader) fault(err error) error {
	err = fault(err)
	if err != nil && r.spoil != nil && !harmless(err) {
		r.spoil(err)
	}
	return err
}

func (r *reader) App(id string) (wake.App, error) {
	row, err := r.q.App(background, id)
	return toApp(row), r.fault(err)
}

func (r *reader) Apps() ([]wake.App, error) {
	rows, err := r.q.Apps(background)
	return convert(rows, r.fault(err), sure(toApp))
}

func (r *reader) Key(id string) (wake.Key, error) {
	row, err := r.q.Key(background, id)
	return toKey(row), r.fault(err)
}

func (r *reader) Keys(app string) ([]wake.Key, error) {
	rows, err := r.q.Keys(background, app)
	return convert(rows, r.fault(err), sure(toKey))
}

func (r *reader) Manifest(app string) (store.Manifest, error) {
	row, err := r.q.Manifest(background, app)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Manifest{}, nil
	}
	return store.Manifest{Version: row.Version, Body: row.Body}, r.fault(err)
}

func (r *reader) ManifestVersion(app string) (int64, error) {
	version, err := r.q.ManifestVersion(background, app)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return version, r.fault(err)
}

func (r *reader) Conversation(id string) (wake.Conversation, error) {
	row, err := r.q.Conversation(background, id)
	return toConversation(row), r.fault(err)
}

func (r *reader) ConversationOf(app, kind, user, thread string) (wake.Conversation, error) {
	if thread == "" {
		return wake.Conversation{}, store.ErrNotFound
	}
	row, err := r.q.ConversationOf(background, queries.ConversationOfParams{App: app, Kind: kind, UserID: user, Thread: thread})
	return toConversation(row), r.fault(err)
}

func (r *reader) Subscription(id string) (wake.Subscription, error) {
	row, err := r.q.Subscription(background, id)
	if err != nil {
		return wake.Subscription{}, r.fault(err)
	}
	return toSubscription(row)
}

func (r *reader) SubscriptionOf(conversation, topic, event string, arguments json.RawMessage) (wake.Subscription, error) {
	row, err := r.q.SubscriptionOf(background, queries.SubscriptionOfParams{
		Conversation: conversation, Topic: topic, Event: event, Arguments: blob(arguments),
	})
	if err != nil {
		return wake.Subscription{}, r.fault(err)
	}
	return toSubscription(row)
}

func (r *reader) SubscriptionsOf(conversation string) ([]wake.Subscription, error) {
	rows, err := r.q.SubscriptionsOf(background, conversation)
	return convert(rows, r.fault(err), toSubscription)
}

func (r *reader) SubscriptionsEver(conversation string) ([]wake.Subscription, error) {
	rows, err := r.q.SubscriptionsEver(background, conversation)
	return convert(rows, r.fault(err), toSubscription)
}

func (r *reader) CountSubscriptions(conversation string) (int, error) {
	n, err := r.q.CountSubscriptions(background, conversation)
	return int(n), r.fault(err)
}

func (r *reader) SubscriptionsTo(app string, topics []string) ([]wake.Subscription, error) {
	return onTopics(app, topics, r.subscriptionsTo)
}

func (r *reader) subscriptionsTo(key topicKey) (*ordered[wake.Subscription], error) {
	n, err := r.q.CountSubscriptionsUpTo(background, queries.CountSubscriptionsUpToParams{
		App: key.app, Topic: key.topic, Max: store.MostListed + 1,
	})
	if err != nil {
		return nil, r.fault(err)
	}
	if n > store.MostListed {
		return nil, store.ErrMany
	}
	rows, err := r.q.SubscriptionsTo(background, queries.SubscriptionsToParams{App: key.app, Topic: key.topic})
	if err != nil {
		return nil, r.fault(err)
	}
	return topiccache.InOrder(rows, toSubscription, func(row queries.Subscription) int64 { return row.N })
}

func (r *reader) SubscriptionsOfUser(app, user string) ([]wake.Subscription, error) {
	rows, err := r.q.SubscriptionsOfUser(background, queries.SubscriptionsOfUserParams{App: app, UserID: user})
	return convert(rows, r.fault(err), toSubscription)
}

func (r *reader) SubscriptionsOfEvent(app, event string) ([]wake.Subscription, error) {
	rows, err := r.q.SubscriptionsOfEvent(background, queries.SubscriptionsOfEventParams{App: app, Event: event})
	return convert(rows, r.fault(err), toSubscription)
}

func (r *reader) SubscriptionsOfApp(app string) ([]wake.Subscription, error) {
	rows, err := r.q.SubscriptionsOfApp(background, app)
	return convert(rows, r.fault(err), toSubscription)
}

func (r *reader) ExpiredSubscriptions(at time.Time, limit int) ([]wake.Subscription, error) {
	rows, err := r.q.ExpiredSubscriptions(background, queries.ExpiredSubscriptionsParams{
		ExpiresAt: micros(at), Limit: atLeastZero(limit),
	})
	return convert(rows, r.fault(err), toSubscription)
}

func (r *reader) CountSubscriptionsTo(app, topic string, at time.Time) (int, error) {
	n, err := r.q.CountSubscriptionsTo(background, queries.CountSubscriptionsToParams{App: app, Topic: topic, At: micros(at)})
	return int(n), r.fault(err)
}

func (r *reader) CountTakers(app string, topics []string, event, to string, at time.Time) (int, error) {
	total := 0
	for i, topic := range topics {
		if slices.Contains(topics[:i], topic) {
			continue
		}
		n, err := r.q.CountTakers(background, queries.CountTakersParams{App: app, Topic: topic, Event: event, At: micros(at), Recipient: to})
		if err != nil {
			return 0, r.fault(err)
		}
		total += int(n)
	}
	return total, nil
}

func (r *reader) PickySubscriptionsTo(app, topic, after string, limit int) ([]wake.Subscription, error) {
	rows, err := r.q.PickySubscriptionsTo(background, queries.PickySubscriptionsToParams{App: app, Topic: topic, After: after, Max: atLeastZero(limit)})
	return convert(rows, r.fault(err), toSubscription)
}

func (r *reader) SomeSubscriptionsTo(app, topic string, limit int) ([]wake.Subscription, error) {
	rows, err := r.q.SomeSubscriptionsTo(background, queries.SomeSubscriptionsToParams{App: app, Topic: topic, Max: atLeastZero(limit)})
	return convert(rows, r.fault(err), toSubscription)
}

func (r *reader) Webhook(id string) (wake.Webhook, error) {
	row, err := r.q.Webhook(background, id)
	if err != nil {
		return wake.Webhook{}, r.fault(err)
	}
	return toWebhook(row)
}

func (r *reader) WebhooksTo(app string, topics []string) ([]wake.Webhook, error) {
	return onTopics(app, topics, r.webhooksTo)
}

func (r *reader) webhooksTo(key topicKey) (*ordered[wake.Webhook], error) {
	rows, err := r.q.WebhooksTo(background, queries.WebhooksToParams{App: key.app, Topic: key.topic})
	if err != nil {
		return nil, r.fault(err)
	}
	return topiccache.InOrder(rows, toWebhook, func(row queries.Webhook) int64 { return row.N })
}

func (r *reader) WebhooksOfUser(app, user string) ([]wake.Webhook, error) {
	rows, err := r.q.WebhooksOfUser(background, queries.WebhooksOfUserParams{App: app, UserID: user})
	return convert(rows, r.fault(err), toWebhook)
}

func (r *reader) WebhooksOfEvent(app, event string) ([]wake.Webhook, error) {
	rows, err := r.q.WebhooksOfEvent(background, queries.WebhooksOfEventParams{App: app, Event: event})
	return convert(rows, r.fault(err), toWebhook)
}

func (r *reader) WebhooksOfApp(app string) ([]wake.Webhook, error) {
	rows, err := r.q.WebhooksOfApp(background, app)
	return convert(rows, r.fault(err), toWebhook)
}

func (r *reader) Log() (store.Log, error) {
	return store.Log{Epoch: r.state.Epoch, Head: wake.Seq(r.state.Head), Horizon: wake.Seq(r.state.Horizon)}, nil
}

// atLeastZero keeps a limit from meaning "none", as a negative one does to SQLite.
func atLeastZero(limit int) int64 { return int64(max(limit, 0)) }
