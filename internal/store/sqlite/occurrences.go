package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (r *reader) Occurrence(seq wake.Seq) (wake.Occurrence, error) {
	row, err := r.q.Occurrence(background, int64(seq))
	return toOccurrence(row), r.fault(err)
}

func (r *reader) OccurrenceOf(app, event, key string) (wake.Occurrence, error) {
	if key == "" {
		return wake.Occurrence{}, store.ErrNotFound
	}
	row, err := r.q.OccurrenceOf(background, queries.OccurrenceOfParams{App: app, Event: event, OwnKey: nullString(key)})
	return toOccurrence(row), r.fault(err)
}

func (r *reader) Occurrences(app string, topics []string, after wake.Seq, limit int) ([]wake.Occurrence, error) {
	if limit <= 0 || len(topics) == 0 {
		return nil, nil
	}
	if len(topics) == 1 {
		return r.onTopic(topicKey{app, topics[0]}, after, limit)
	}
	var places []wake.Seq
	for _, topic := range topics {
		on, err := r.placesOn(topicKey{app, topic}, after, limit)
		if err != nil {
			return nil, err
		}
		places = append(places, on...)
	}
	slices.Sort(places)
	places = slices.Compact(places)
	return r.at(places[:min(len(places), limit)])
}

// onTopic is Occurrences for one topic, the common case: one query for what is in the index, then what is in the tail.
func (r *reader) onTopic(key topicKey, after wake.Seq, limit int) ([]wake.Occurrence, error) {
	var found []wake.Occurrence
	if after < wake.Seq(r.state.Indexed) {
		rows, err := r.q.OccurrencesOn(background, queries.OccurrencesOnParams{
			App: key.app, Topic: key.topic, After: int64(after), Max: int64(limit),
		})
		if found, err = convert(rows, r.fault(err), sure(toOccurrence)); err != nil || len(found) == limit {
			return found, err
		}
	}
	places, err := r.unindexed(key, after, limit-len(found))
	if err != nil {
		return nil, err
	}
	rest, err := r.at(places)
	return append(found, rest...), err
}

// placesOn gives the topic's places after the given one, in order, at most limit.
func (r *reader) placesOn(key topicKey, after wake.Seq, limit int) ([]wake.Seq, error) {
	var places []wake.Seq
	if after < wake.Seq(r.state.Indexed) {
		rows, err := r.q.PlacesOn(background, queries.PlacesOnParams{
			App: key.app, Topic: key.topic, After: int64(after), Max: int64(limit),
		})
		if places, err = convert(rows, r.fault(err), sure(func(n int64) wake.Seq { return wake.Seq(n) })); err != nil || len(places) == limit {
			return places, err
		}
	}
	rest, err := r.unindexed(key, after, limit-len(places))
	return append(places, rest...), err
}

// unindexed gives the topic's places that this reader's log has and its index has not.
func (r *reader) unindexed(key topicKey, after wake.Seq, limit int) ([]wake.Seq, error) {
	indexed, head := wake.Seq(r.state.Indexed), wake.Seq(r.state.Head)
	if places, ok := r.tail.on(key, indexed, after, head, limit); ok {
		return places, nil
	}
	// The index was written since this snapshot was taken, which ends well behind: read the log itself.
	var places []wake.Seq
	err := eachTopics(r.q, max(indexed, after), head, func(row queries.TopicsBetweenRow) bool {
		if row.App == key.app && slices.Contains(splitTopics(row.Topics), key.topic) {
			places = append(places, wake.Seq(row.Seq))
		}
		return len(places) < limit
	})
	return places, r.fault(err)
}

// at reads the occurrences at places which the index or the tail named.
func (r *reader) at(places []wake.Seq) ([]wake.Occurrence, error) {
	found := make([]wake.Occurrence, 0, len(places))
	for _, seq := range places {
		row, err := r.q.Occurrence(background, int64(seq))
		if errors.Is(err, sql.ErrNoRows) {
			return nil, fmt.Errorf("%w: a topic names place %d, where nothing is", store.ErrCorrupt, seq)
		}
		if err != nil {
			return nil, r.fault(err)
		}
		found = append(found, toOccurrence(row))
	}
	return found, nil
}

// topicsPage is how many rows of the log eachTopics holds at once.
const topicsPage = 1000

// eachTopics walks the log after one place and up to another, until f returns false.
func eachTopics(q *queries.Queries, after, through wake.Seq, f func(queries.TopicsBetweenRow) bool) error {
	for after < through {
		rows, err := q.TopicsBetween(background, queries.TopicsBetweenParams{
			After: int64(after), Through: int64(through), Max: topicsPage,
		})
		if err != nil {
			return err
		}
		for _, row := range rows {
			if !f(row) {
				return nil
			}
		}
		if len(rows) < topicsPage {
			return nil
		}
		after = wake.Seq(rows[len(rows)-1].Seq)
	}
	return nil
}
