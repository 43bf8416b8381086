package postgres

import (
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A reader reads through one connection: a view's snapshot, or the writer's transaction.
type reader struct {
	conn *pgx.Conn
	q    *queries.Queries
	// state is the part of the log that this reader sees.
	state queries.Log
	// spoil is told of a failure after which the transaction cannot go on, which is any but a missing row; nil in a view.
	spoil func(error)
}

// fault maps an error of the database, see the function of that name.
func (r *reader) fault(err error) error {
	err = fault(r.conn, err)
	if err != nil && r.spoil != nil && !errors.Is(err, store.ErrNotFound) {
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
	if errors.Is(err, pgx.ErrNoRows) {
		return store.Manifest{}, nil
	}
	return store.Manifest{Version: row.Version, Body: row.Body}, r.fault(err)
}

func (r *reader) ManifestVersion(app string) (int64, error) {
	version, err := r.q.ManifestVersion(background, app)
	if errors.Is(err, pgx.ErrNoRows) {
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
		Conversation: conversation, Topic: []byte(topic), Event: event, Arguments: blob(arguments),
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

func (r *reader) SubscriptionsTo(app string, topics []string) ([]wake.Subscription, error) {
	if err := r.few(app, topics); err != nil {
		return nil, err
	}
	rows, err := r.q.SubscriptionsTo(background, queries.SubscriptionsToParams{App: app, Topics: raw(topics)})
	return convert(rows, r.fault(err), toSubscription)
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
		At: micros(at), Max: most(limit),
	})
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
	rows, err := r.q.WebhooksTo(background, queries.WebhooksToParams{App: app, Topics: raw(topics)})
	return convert(rows, r.fault(err), toWebhook)
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

// most is a limit as a statement takes it: what is negative means none, and more than this nobody could hold.
func most(limit int) int32 { return int32(min(max(limit, 0), math.MaxInt32)) }
