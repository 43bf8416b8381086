package postgres

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
	"github.com/rouse-dev/rouse/internal/store/topiccache"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A tx is one update's part of the writer's transaction.
type tx struct {
	*reader
	w     *writer
	wrote bool // something was changed
}

// Wrote implements [group.Part].
func (t *tx) Wrote() bool { return t.wrote }

// Broken implements [group.Part].
func (t *tx) Broken() error { return t.w.broken }

// note notes that something was changed.
func (t *tx) note() { t.wrote, t.w.wrote = true, true }

// changed notes that something was changed, or could not be, and maps the error.
func (t *tx) changed(err error) error {
	if err != nil {
		return t.fault(err)
	}
	t.note()
	return nil
}

// changedRows is changed for a statement that may find nothing to change.
func (t *tx) changedRows(n int64, err error) (bool, error) {
	if err != nil || n == 0 {
		return false, t.fault(err)
	}
	t.note()
	return true, nil
}

// created is changedRows for an insert that does nothing when the row's name is taken.
func (t *tx) created(n int64, err error) error {
	created, err := t.changedRows(n, err)
	if err == nil && !created {
		return store.ErrExists
	}
	return err
}

func (t *tx) app(id string) (appState, error) {
	return t.w.cache.app(id, func(id string) (appState, error) {
		version, err := t.q.AppState(background, id)
		if errors.Is(err, pgx.ErrNoRows) {
			return appState{}, nil
		}
		return appState{exists: err == nil, manifestVersion: version}, t.fault(err)
	})
}

// needApp returns ErrNotFound when there is no such app.
func (t *tx) needApp(id string) error {
	state, err := t.app(id)
	if err == nil && !state.exists {
		return store.ErrNotFound
	}
	return err
}

func (t *tx) ManifestVersion(app string) (int64, error) {
	state, err := t.app(app)
	return state.manifestVersion, err
}

func (t *tx) CreateApp(app wake.App) error {
	err := t.created(t.q.CreateApp(background, queries.CreateAppParams{
		ID: app.ID, Name: app.Name, CreatedAt: micros(app.CreatedAt),
	}))
	if err == nil {
		delete(t.w.cache.apps, app.ID)
		t.w.outdates = true
	}
	return err
}

func (t *tx) CreateKey(key wake.Key) error {
	if err := t.needApp(key.App); err != nil {
		return err
	}
	return t.created(t.q.CreateKey(background, queries.CreateKeyParams{
		ID: key.ID, App: key.App, Name: key.Name, Public: []byte(key.Public),
		CreatedAt: micros(key.CreatedAt), RevokedAt: micros(key.RevokedAt),
	}))
}

func (t *tx) RevokeKey(app, id string, at time.Time) error {
	there, err := t.changedRows(t.q.RevokeKey(background, queries.RevokeKeyParams{App: app, ID: id, At: micros(at)}))
	if err == nil && !there {
		return store.ErrNotFound
	}
	return err
}

func (t *tx) PutManifest(app string, body json.RawMessage) (int64, error) {
	if err := t.needApp(app); err != nil {
		return 0, err
	}
	t.state.Manifests++
	version := t.state.Manifests
	t.w.outdates = true
	t.w.cache.apps[app] = appState{exists: true, manifestVersion: version}
	return version, t.changed(t.q.PutManifest(background, queries.PutManifestParams{App: app, Version: version, Body: body}))
}

func (t *tx) PutConversation(c wake.Conversation) error {
	if err := t.needApp(c.App); err != nil {
		return err
	}
	return t.changed(t.q.PutConversation(background, queries.PutConversationParams{
		ID: c.ID, App: c.App, Harness: c.Harness, Client: c.Client, Version: c.Version, Kind: c.Kind(), UserID: c.User,
		Thread: c.Thread, Position: int64(c.Position), CreatedAt: micros(c.CreatedAt), SeenAt: micros(c.SeenAt),
	}))
}

func (t *tx) Advance(conversation string, to wake.Seq) error {
	released, err := t.q.Advance(background, queries.AdvanceParams{ID: conversation, Position: int64(to)})
	if err := t.changed(err); err != nil {
		return err
	}
	return t.erase(released)
}

func (t *tx) Hand(conversation string, now, lease time.Time) (bool, error) {
	return t.changedRows(t.q.Hand(background, queries.HandParams{ID: conversation, Now: micros(now), Lease: micros(lease)}))
}

func (t *tx) Handed(conversation string, lease time.Time) error {
	_, err := t.changedRows(t.q.Handed(background, queries.HandedParams{ID: conversation, Lease: micros(lease)}))
	return err
}

func (t *tx) SubscriptionsTo(app string, topics []string) ([]wake.Subscription, error) {
	return topiccache.Join(topics, func(topic string) (*topiccache.Rows[wake.Subscription], error) {
		return t.w.cache.subscriptions.Get(topicKey{app, topic}, t.subscriptionsTo)
	})
}

func (t *tx) subscriptionsTo(key topicKey) (*topiccache.Rows[wake.Subscription], error) {
	if err := t.few(key.app, []string{key.topic}); err != nil {
		return nil, err
	}
	rows, err := t.q.SubscriptionsTo(background, queries.SubscriptionsToParams{App: key.app, Topics: raw([]string{key.topic})})
	if err != nil {
		return nil, t.fault(err)
	}
	return topiccache.InOrder(rows, toSubscription, func(row queries.Subscription) int64 { return row.N })
}

func (t *tx) PutSubscription(s wake.Subscription) error {
	row, err := subscriptionRow(s)
	if err != nil {
		return err
	}
	n, err := t.q.PutSubscription(background, row) // no row when there is no such conversation
	if err := t.changed(err); err != nil {
		return err
	}
	t.w.outdates = true
	if s.Claimed {
		if err := t.releaseHolders([]string{s.ID}); err != nil {
			return err
		}
	}
	cache, key := t.w.cache.subscriptions, topicKey{s.App, s.Topic}
	if s.EndedAt.IsZero() && cache.Takes(key, s.ID, n) {
		kept, err := t.Subscription(s.ID) // as it will be read
		if err != nil {
			return err
		}
		cache.Add(key, kept, n)
		return nil
	}
	cache.ForgetRow(s.ID)
	cache.Forget(key)
	return nil
}

func (t *tx) EndSubscription(id string, until wake.Seq, at time.Time) (bool, error) {
	ended, err := t.q.EndSubscription(background, queries.EndSubscriptionParams{
		ID: id, UntilSeq: int64(until), EndedAt: micros(at),
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err := t.changed(err); err != nil {
		return false, err
	}
	t.w.outdates = true
	t.w.cache.subscriptions.Forget(topicKey{ended.App, string(ended.Topic)})
	return true, t.erase(ended.Released)
}
