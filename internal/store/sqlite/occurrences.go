package sqlite

import (
	"encoding/json"
	"fmt"
	"math"
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
	after = max(after, wake.Seq(r.state.Horizon))
	if unread := wake.Seq(r.state.Head) - after; unread < wake.Seq(len(topics)) {
		places, err := r.lookThrough(app, topics, after, limit)
		if err != nil {
			return nil, err
		}
		return r.at(places)
	}
	var places []wake.Seq
	for _, topic := range topics {
		on, err := r.placesOn(topicKey{app, topic}, after, limit)
		if err != nil {
			return nil, err
		}
		if places = append(places, on...); len(places) > limit+placesAtHand {
			places = first(places, limit)
		}
	}
	return r.at(first(places, limit))
}

// placesAtHand is how many places more than are asked for are collected, of many topics, before those that are too many are let go.
const placesAtHand = 10_000

// first gives the first places in order, each once, at most limit.
func first(places []wake.Seq, limit int) []wake.Seq {
	slices.Sort(places)
	places = slices.Compact(places)
	return places[:min(len(places), limit)]
}

// lookThrough gives the places on the topics after the given one, in order, at most limit, from the log itself. Near its end that
// costs less than to ask for one topic after the other: so it is for whoever is connected and has many.
func (r *reader) lookThrough(app string, topics []string, after wake.Seq, limit int) (places []wake.Seq, err error) {
	wanted := make(map[string]bool, len(topics))
	for _, topic := range topics {
		wanted[topic] = true
	}
	err = eachTopics(r.q, after, wake.Seq(r.state.Head), func(row queries.TopicsBetweenRow) bool {
		if row.App == app && slices.ContainsFunc(splitTopics(row.Topics), func(topic string) bool { return wanted[topic] }) {
			places = append(places, wake.Seq(row.Seq))
		}
		return len(places) < limit
	})
	return places, r.fault(err)
}

// placesOn gives the topic's places after the given one, in order, at most limit. Those up to the horizon do not count any
// more: some may be gone while a run still names them.
func (r *reader) placesOn(key topicKey, after wake.Seq, limit int) ([]wake.Seq, error) {
	after = max(after, wake.Seq(r.state.Horizon))
	places, err := r.indexed(key, after, limit)
	if err != nil || len(places) == limit {
		return places, err
	}
	rest, err := r.unindexed(key, after, limit-len(places))
	return append(places, rest...), err
}

// runsAtOnce is how many runs of a topic are read at once; most often the first is enough.
const runsAtOnce = 16

// indexed gives the topic's places that the index has.
func (r *reader) indexed(key topicKey, after wake.Seq, limit int) ([]wake.Seq, error) {
	var places []wake.Seq
	for after < wake.Seq(r.state.Indexed) {
		rows, err := r.q.RunsOn(background, queries.RunsOnParams{
			App: key.app, Topic: key.topic, After: int64(after), Max: runsAtOnce,
		})
		if err != nil {
			return nil, r.fault(err)
		}
		for _, row := range rows {
			run, err := placesOf(wake.Seq(row.Last), row.Earlier)
			if err != nil {
				return nil, err
			}
			run = between(run, after, math.MaxInt64)
			places = append(places, run[:min(len(run), limit-len(places))]...)
			if len(places) == limit {
				return places, nil
			}
			after = wake.Seq(row.Last)
		}
		if len(rows) < runsAtOnce {
			break
		}
	}
	return places, nil
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
	if len(places) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(places)
	if err != nil {
		return nil, err
	}
	rows, err := r.q.OccurrencesAt(background, string(list))
	found, err := convert(rows, r.fault(err), sure(toOccurrence))
	if err == nil && len(found) < len(places) {
		return nil, fmt.Errorf("%w: of %d places that a topic names, %d hold nothing",
			store.ErrCorrupt, len(places), len(places)-len(found))
	}
	return found, err
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
