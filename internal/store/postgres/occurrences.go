package postgres

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
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
	row, err := r.q.OccurrenceOf(background, queries.OccurrenceOfParams{App: app, Event: event, OwnKey: nullText(key)})
	return toOccurrence(row), r.fault(err)
}

// Occurrences leaves out what lies before the horizon: an occurrence there with a wrong time may still be in its place.
func (r *reader) Occurrences(app string, topics []string, after wake.Seq, limit int) ([]wake.Occurrence, error) {
	if limit <= 0 || len(topics) == 0 {
		return nil, nil
	}
	rows, err := r.q.Occurrences(background, queries.OccurrencesParams{
		App: app, Topics: raw(topics), After: max(int64(after), r.state.Horizon), Max: most(limit),
	})
	return convert(rows, r.fault(err), sure(toOccurrence))
}

func (r *reader) OldestOccurrences(before time.Time, limit int) ([]wake.Occurrence, error) {
	rows, err := r.q.FirstOccurrences(background, most(limit))
	if err != nil {
		return nil, r.fault(err)
	}
	for i, row := range rows {
		if row.At >= micros(before) {
			rows = rows[:i]
			break
		}
	}
	return convert(rows, nil, sure(toOccurrence))
}

// PlaceBefore halves the log until it has the first place that is not before the time.
func (r *reader) PlaceBefore(at time.Time) (wake.Seq, error) {
	// Whatever is kept after low is before high; nothing that is kept up to low happened later, nothing after high earlier.
	low, high := r.state.Horizon, r.state.Head
	for low < high {
		middle := low + (high-low)/2 + 1
		first, err := r.q.FirstPlaceFrom(background, middle)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return 0, r.fault(err)
		}
		if err != nil || first.Seq > high || first.At >= micros(at) {
			high = middle - 1
		} else {
			low = first.Seq
		}
	}
	return wake.Seq(low), nil
}
