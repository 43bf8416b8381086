package postgres

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A pendingOccurrence is an appended occurrence that its transaction has not yet written.
type pendingOccurrence struct {
	wake.Occurrence
	topics []byte
}

// maxPending is how many occurrences a transaction holds in memory until it writes them.
const maxPending = 1000

// Append keeps the occurrence in memory until the transaction ends or reads the log.
func (t *tx) Append(o wake.Occurrence) (wake.Seq, error) {
	topics, err := joinTopics(o.Topics)
	if err != nil {
		return 0, err
	}
	for _, text := range []string{string(o.Kind), o.Event, o.To, o.Key} {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return 0, fmt.Errorf("occurrence: PostgreSQL cannot keep the text %q", text) // better now than with the others'
		}
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
	t.state.Bytes += sizeOf(o, topics)
	t.note()
	t.w.pending = append(t.w.pending, pendingOccurrence{o, topics})
	if o.Key != "" {
		t.w.keys.appended[occurrenceKey{o.App, o.Event, o.Key}] = true
	}
	if len(t.w.pending) == maxPending {
		return o.Seq, t.flush()
	}
	return o.Seq, nil
}

// occurrenceBytes is about what an occurrence takes besides its content: the row, its places, and the entries of indexes.
const occurrenceBytes = 400

func sizeOf(o wake.Occurrence, topics []byte) int64 {
	return int64(occurrenceBytes + 2*len(topics) + len(o.Arguments) + len(o.Text) + len(o.Data))
}

func (t *tx) keyTaken(key occurrenceKey) (bool, error) {
	if t.w.keys.free(key) {
		return false, nil
	}
	if err := t.flush(); err != nil {
		return false, err
	}
	taken, err := t.q.KeyTaken(background, queries.KeyTakenParams{App: key.app, Event: key.event, OwnKey: nullText(key.key)})
	return taken, t.fault(err)
}

// flush writes the pending occurrences.
func (t *tx) flush() error {
	if len(t.w.pending) == 0 {
		return nil
	}
	p := newPipeline(t.conn)
	if err := t.w.write(queries.New(p)); err != nil {
		return err
	}
	if _, err := p.send(background); err != nil {
		return t.fault(t.w.keys.refused(err))
	}
	return nil
}

// write writes the pending occurrences and their places on topics.
func (w *writer) write(q *queries.Queries) error {
	if len(w.pending) == 0 {
		return nil
	}
	var o queries.InsertOccurrencesParams
	var places queries.InsertPlacesParams
	for _, p := range w.pending {
		o.Seqs, o.Apps, o.Kinds = append(o.Seqs, int64(p.Seq)), append(o.Apps, p.App), append(o.Kinds, string(p.Kind))
		o.Events, o.Topics = append(o.Events, p.Event), append(o.Topics, p.topics)
		o.Arguments, o.Texts, o.Data = append(o.Arguments, blob(p.Arguments)), append(o.Texts, []byte(p.Text)), append(o.Data, blob(p.Data))
		o.Recipients, o.OwnKeys = append(o.Recipients, p.To), append(o.OwnKeys, p.Key)
		o.Matched, o.At = append(o.Matched, int64(p.Matched)), append(o.At, micros(p.At))
		for _, topic := range p.Topics {
			places.Apps, places.Topics = append(places.Apps, p.App), append(places.Topics, []byte(topic))
			places.Seqs = append(places.Seqs, int64(p.Seq))
		}
	}
	if err := q.InsertOccurrences(background, o); err != nil {
		return err
	}
	clear(w.pending) // let go of their payloads
	w.pending = w.pending[:0]
	return q.InsertPlaces(background, places)
}

func (t *tx) Occurrence(seq wake.Seq) (wake.Occurrence, error) {
	if err := t.flush(); err != nil {
		return wake.Occurrence{}, err
	}
	return t.reader.Occurrence(seq)
}

func (t *tx) OccurrenceOf(app, event, key string) (wake.Occurrence, error) {
	if t.w.keys.appended[occurrenceKey{app, event, key}] {
		if err := t.flush(); err != nil {
			return wake.Occurrence{}, err
		}
	}
	return t.reader.OccurrenceOf(app, event, key)
}

func (t *tx) Occurrences(app string, topics []string, after wake.Seq, limit int) ([]wake.Occurrence, error) {
	if err := t.flush(); err != nil {
		return nil, err
	}
	return t.reader.Occurrences(app, topics, after, limit)
}

func (t *tx) OldestOccurrences(before time.Time, limit int) ([]wake.Occurrence, error) {
	if err := t.flush(); err != nil {
		return nil, err
	}
	return t.reader.OldestOccurrences(before, limit)
}

func (t *tx) PlaceBefore(at time.Time) (wake.Seq, error) {
	if err := t.flush(); err != nil {
		return 0, err
	}
	return t.reader.PlaceBefore(at)
}

// A placed is an occurrence that is to be removed: where it is in the log and on which topics.
type placed struct {
	seq    int64
	app    string
	topics []string
}

// removeOccurrences removes occurrences, with what was to be done with them and what anybody is owed of them. None is
// pending. It returns the webhooks that were to have any, each once.
func (t *tx) removeOccurrences(gone []placed) (webhooks []string, err error) {
	if len(gone) == 0 {
		return nil, nil
	}
	t.w.keys.distrust()
	var seqs []int64
	var places queries.DeletePlacesParams
	for _, p := range gone {
		seqs = append(seqs, p.seq)
		for _, topic := range p.topics {
			places.Apps, places.Topics, places.Seqs = append(places.Apps, p.app), append(places.Topics, []byte(topic)), append(places.Seqs, p.seq)
		}
	}
	webhooks, err = t.q.DeleteDeliveriesOf(background, seqs)
	if err := t.changed(err); err != nil {
		return nil, err
	}
	slices.Sort(webhooks)
	webhooks = slices.Compact(webhooks)
	if err := t.refresh(webhooks); err != nil {
		return nil, err
	}
	if err := t.changed(t.q.ReleasePlaces(background, seqs)); err != nil {
		return nil, err
	}
	removed, err := t.q.DeleteOccurrences(background, seqs)
	if err := t.changed(err); err != nil {
		return nil, err
	}
	t.state.Bytes -= removed.Bytes + removed.Gone*occurrenceBytes
	return webhooks, t.changed(t.q.DeletePlaces(background, places))
}

// removedAtOnce is how many occurrences of an app one statement removes.
const removedAtOnce = 5000

func (t *tx) DeleteApp(id string) error {
	app, err := t.app(id)
	switch {
	case err != nil:
		return err
	case !app.exists:
		return store.ErrNotFound
	}
	if err := t.flush(); err != nil {
		return err
	}
	for more := true; more; {
		if more, err = t.removeSomeOf(id); err != nil {
			return err
		}
	}
	t.w.cache = newCache()
	t.w.outdates = true
	t.state.Erased++
	_, err = t.q.DeleteApp(background, id)
	return t.changed(err)
}

// removeSomeOf removes some of an app's occurrences, and reports whether there may be more.
func (t *tx) removeSomeOf(app string) (more bool, err error) {
	places, err := t.q.PlacesOfApp(background, queries.PlacesOfAppParams{App: app, Max: removedAtOnce})
	if err != nil {
		return false, t.fault(err)
	}
	var gone []placed
	for _, p := range places {
		gone = append(gone, placed{p.Seq, app, []string{string(p.Topic)}})
	}
	if len(gone) == 0 {
		seqs, err := t.q.UnlistedPlaces(background, queries.UnlistedPlacesParams{App: app, Max: removedAtOnce})
		if err != nil {
			return false, t.fault(err)
		}
		for _, seq := range seqs {
			gone = append(gone, placed{seq: seq, app: app})
		}
	}
	_, err = t.removeOccurrences(gone)
	return len(gone) == removedAtOnce || len(places) > 0, err
}
