package sqlite

import (
	"context"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Append keeps the occurrence in memory until enough are there for one statement, or the transaction ends or reads the log.
func (t *tx) Append(o wake.Occurrence) (wake.Seq, error) {
	topics, err := joinTopics(o.Topics)
	if err != nil {
		return 0, err
	}
	app, err := t.app(o.App)
	switch {
	case err != nil:
		return 0, err
	case !app.exists:
		return 0, store.ErrNotFound
	}
	if o.Key != "" {
		taken, err := t.keyTaken(occurrenceKey{o.App, o.Event, o.Key})
		if err != nil {
			return 0, err
		}
		if taken {
			return 0, store.ErrExists
		}
	}
	t.state.Head++
	o.Seq = wake.Seq(t.state.Head)
	t.wrote = true
	t.w.tail.add(o.App, o.Topics, o.Seq)
	t.w.pending = append(t.w.pending, pendingOccurrence{o, topics})
	if o.Key != "" {
		t.w.keys.appended[occurrenceKey{o.App, o.Event, o.Key}] = struct{}{}
	}
	if len(t.w.pending) == bulkSizes[0] {
		return o.Seq, t.w.flush()
	}
	return o.Seq, nil
}

func (t *tx) keyTaken(key occurrenceKey) (bool, error) {
	if t.w.keys.free(key) {
		return false, nil
	}
	if err := t.flushKey(key); err != nil {
		return false, err
	}
	taken, err := t.q.KeyTaken(background, queries.KeyTakenParams{App: key.app, Event: key.event, OwnKey: nullString(key.key)})
	return taken, t.fault(err)
}

// flushKey writes what is pending when an occurrence with that key may be among it.
func (t *tx) flushKey(key occurrenceKey) error {
	if !t.w.keys.holds(key) {
		return nil
	}
	return t.w.flush()
}

func (t *tx) Occurrence(seq wake.Seq) (wake.Occurrence, error) {
	if err := t.w.flush(); err != nil {
		return wake.Occurrence{}, err
	}
	return t.reader.Occurrence(seq)
}

func (t *tx) OccurrenceOf(app, event, key string) (wake.Occurrence, error) {
	if err := t.flushKey(occurrenceKey{app, event, key}); err != nil {
		return wake.Occurrence{}, err
	}
	return t.reader.OccurrenceOf(app, event, key)
}

func (t *tx) Occurrences(app string, topics []string, after wake.Seq, limit int) ([]wake.Occurrence, error) {
	if err := t.w.flush(); err != nil {
		return nil, err
	}
	return t.reader.Occurrences(app, topics, after, limit)
}

// settle writes all of the log and of its topic index that is still in memory, so that parts of them can be removed.
func (t *tx) settle() error {
	t.wrote = true
	if err := t.w.flush(); err != nil {
		return err
	}
	return t.w.index()
}

func (t *tx) DeleteApp(id string) error {
	app, err := t.app(id)
	switch {
	case err != nil:
		return err
	case !app.exists:
		return store.ErrNotFound
	}
	if err := t.settle(); err != nil {
		return err
	}
	t.w.cache = newCache()
	for _, delete := range []func(context.Context, string) error{t.q.ReleaseApp, t.q.DeletePlacesOfApp, t.q.DeleteOccurrencesOfApp} {
		if err := t.changed(delete(background, id)); err != nil {
			return err
		}
	}
	if err := t.countErasure(); err != nil {
		return err
	}
	_, err = t.changedRows(t.q.DeleteApp(background, id))
	return err
}
