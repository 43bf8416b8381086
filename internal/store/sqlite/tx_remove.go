package sqlite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

// deleteConversation removes a conversation and its subscriptions, which the caller has read.
func (t *tx) deleteConversation(id string, subs []wake.Subscription) error {
	if err := t.releaseConversation(id, everything); err != nil {
		return err
	}
	for _, s := range subs {
		t.w.cache.subscriptions.Forget(topicKey{s.App, s.Topic})
	}
	return t.changed(t.q.DeleteConversation(background, id))
}

// A placed is an occurrence that is to be removed: where it is in the log and on which topics.
type placed struct {
	seq    wake.Seq
	topics []string
}

func newPlaced(seq int64, topics string) placed { return placed{wake.Seq(seq), splitTopics(topics)} }

// removeOccurrences removes single occurrences of an app, with what was to be done with them, from the middle of the log and
// of the topic index. They are in order. The log must be settled.
func (t *tx) removeOccurrences(app string, gone []placed) error {
	if len(gone) == 0 {
		return nil
	}
	on, places := map[string][]wake.Seq{}, make([]wake.Seq, len(gone))
	for i, p := range gone {
		places[i] = p.seq
		for _, topic := range p.topics {
			on[topic] = append(on[topic], p.seq)
		}
	}
	list, err := json.Marshal(places)
	if err != nil {
		return err
	}
	hooks, err := t.q.DeleteDeliveriesAt(background, string(list))
	if err := t.changed(err); err != nil {
		return err
	}
	slices.Sort(hooks)
	for _, id := range slices.Compact(hooks) {
		if err := t.refresh(id); err != nil {
			return err
		}
	}
	if err := t.changed(t.q.ReleasePlaces(background, string(list))); err != nil {
		return err
	}
	if err := t.changed(t.q.DeleteOccurrencesAt(background, string(list))); err != nil {
		return err
	}
	for topic, seqs := range on {
		if err := t.removePlaces(topicKey{app, topic}, seqs); err != nil {
			return err
		}
	}
	return nil
}

// removePlaces takes places, in order, out of the topic's runs.
func (t *tx) removePlaces(key topicKey, gone []wake.Seq) error {
	for len(gone) > 0 {
		row, err := t.q.RunAt(background, queries.RunAtParams{App: key.app, Topic: key.topic, Seq: int64(gone[0])})
		if errors.Is(err, sql.ErrNoRows) {
			return nil // that run was removed already
		}
		if err != nil {
			return t.fault(err)
		}
		places, err := placesOf(wake.Seq(row.Last), row.Earlier)
		if err != nil {
			return err
		}
		kept := slices.DeleteFunc(slices.Clone(places), func(place wake.Seq) bool {
			_, found := slices.BinarySearch(gone, place)
			return found
		})
		if err := t.replaceRun(key, row.Last, places, kept); err != nil {
			return err
		}
		gone = between(gone, wake.Seq(row.Last), everything)
	}
	return nil
}

// replaceRun writes a run with fewer places.
func (t *tx) replaceRun(key topicKey, last int64, places, kept []wake.Seq) error {
	if len(kept) == len(places) {
		return nil
	}
	if err := t.changed(t.q.DeleteRun(background, queries.DeleteRunParams{App: key.app, Topic: key.topic, Last: last})); err != nil {
		return err
	}
	if len(kept) == 0 {
		return nil
	}
	r := run{key, kept}
	return t.changed(t.q.AddRun(background, queries.AddRunParams{App: key.app, Topic: key.topic, Last: int64(r.last()), Earlier: r.earlier()}))
}
