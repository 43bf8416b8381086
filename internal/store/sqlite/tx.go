package sqlite

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A tx is one job's part of the writer's transaction.
type tx struct {
	*reader
	w     *writer
	wrote bool // something was changed
}

// changed notes that the job changed something, or could not, and maps the error.
func (t *tx) changed(err error) error {
	if err != nil {
		return t.fault(err)
	}
	t.wrote = true
	return nil
}

// changedRows is changed for a statement that may find nothing to change.
func (t *tx) changedRows(n int64, err error) (bool, error) {
	if err != nil || n == 0 {
		return false, t.fault(err)
	}
	t.wrote = true
	return true, nil
}

func (t *tx) app(id string) (appState, error) {
	return t.w.cache.app(id, func(id string) (appState, error) {
		if _, err := t.q.App(background, id); err != nil {
			if err = t.fault(err); errors.Is(err, store.ErrNotFound) {
				err = nil
			}
			return appState{}, err
		}
		version, err := t.reader.ManifestVersion(id)
		return appState{exists: true, manifestVersion: version}, err
	})
}

func (t *tx) ManifestVersion(app string) (int64, error) {
	state, err := t.app(app)
	return state.manifestVersion, err
}

func (t *tx) CreateApp(app wake.App) error {
	created, err := t.changedRows(t.q.CreateApp(background, queries.CreateAppParams{
		ID: app.ID, Name: app.Name, CreatedAt: micros(app.CreatedAt),
	}))
	if err != nil {
		return err
	}
	if !created {
		return store.ErrExists
	}
	delete(t.w.cache.apps, app.ID)
	return nil
}

func (t *tx) CreateKey(key wake.Key) error {
	created, err := t.changedRows(t.q.CreateKey(background, queries.CreateKeyParams{
		ID: key.ID, App: key.App, Name: key.Name, Public: []byte(key.Public),
		CreatedAt: micros(key.CreatedAt), RevokedAt: micros(key.RevokedAt),
	}))
	if err != nil {
		return err
	}
	if !created {
		return store.ErrExists
	}
	return nil
}

func (t *tx) RevokeKey(app, id string, at time.Time) error {
	there, err := t.changedRows(t.q.RevokeKey(background, queries.RevokeKeyParams{App: app, ID: id, At: micros(at)}))
	if err != nil {
		return err
	}
	if !there {
		return store.ErrNotFound
	}
	return nil
}

func (t *tx) PutManifest(app string, body json.RawMessage) (int64, error) {
	state, err := t.app(app)
	if err != nil {
		return 0, err
	}
	if !state.exists {
		return 0, store.ErrNotFound
	}
	version, err := t.q.NextManifestVersion(background)
	if err := t.changed(err); err != nil {
		return 0, err
	}
	t.w.cache.apps[app] = appState{exists: true, manifestVersion: version}
	return version, t.changed(t.q.PutManifest(background, queries.PutManifestParams{App: app, Version: version, Body: body}))
}

func (t *tx) PutConversation(c wake.Conversation) error {
	return t.changed(t.q.PutConversation(background, queries.PutConversationParams{
		ID: c.ID, App: c.App, Harness: c.Harness, Client: c.Client, Version: c.Version, Kind: c.Kind(), UserID: c.User,
		Thread: c.Thread, Position: int64(c.Position), CreatedAt: micros(c.CreatedAt), SeenAt: micros(c.SeenAt),
	}))
}

func (t *tx) Advance(conversation string, to wake.Seq) error {
	moved, err := t.changedRows(t.q.Advance(background, queries.AdvanceParams{ID: conversation, Position: int64(to)}))
	if err != nil || !moved {
		return err
	}
	return t.releaseConversation(conversation, to)
}

func (t *tx) Hand(conversation string, now, lease time.Time) (bool, error) {
	return t.changedRows(t.q.Hand(background, queries.HandParams{ID: conversation, Now: micros(now), Lease: micros(lease)}))
}

func (t *tx) Handed(conversation string, lease time.Time) error {
	_, err := t.changedRows(t.q.Handed(background, queries.HandedParams{ID: conversation, Lease: micros(lease)}))
	return err
}

func (t *tx) SubscriptionsTo(app string, topics []string) ([]wake.Subscription, error) {
	return onTopics(app, topics, func(key topicKey) (*ordered[wake.Subscription], error) {
		return t.w.cache.subscriptions.Get(key, t.subscriptionsTo)
	})
}

func (t *tx) PutSubscription(s wake.Subscription) error {
	row, err := subscriptionRow(s)
	if err != nil {
		return err
	}
	n, err := t.q.PutSubscription(background, row)
	if err := t.changed(err); err != nil {
		return err
	}
	if s.Claimed {
		if err := t.releaseHolder(s.ID); err != nil {
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
	if err := t.changed(err); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		return false, err
	}
	t.w.cache.subscriptions.Forget(topicKey{ended.App, ended.Topic})
	return true, t.releaseHolder(id)
}
