package sqlite

import (
	"database/sql"
	"errors"
	"time"

	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

func toReplay(r queries.Replay) wake.Replay {
	return wake.Replay{
		Subscription: r.Subscription, Conversation: r.Conversation,
		From: wake.Seq(r.FromSeq), After: wake.Seq(r.AfterSeq), Until: wake.Seq(r.UntilSeq),
	}
}

func (r *reader) Replay(subscription string) (wake.Replay, error) {
	row, err := r.q.Replay(background, subscription)
	return toReplay(row), r.fault(err)
}

func (r *reader) ReplaysOf(conversation string) ([]wake.Replay, error) {
	rows, err := r.q.ReplaysOf(background, conversation)
	return convert(rows, r.fault(err), sure(toReplay))
}

func (r *reader) ReplaysEver(conversation string) ([]wake.Replay, error) {
	rows, err := r.q.ReplaysEver(background, conversation)
	return convert(rows, r.fault(err), sure(toReplay))
}

// PlaceBefore halves the log until it has the first place that is not before the time.
func (r *reader) PlaceBefore(at time.Time) (wake.Seq, error) {
	// Whatever is kept after low is before high; nothing that is kept up to low happened later, nothing after high earlier.
	low, high := r.state.Horizon, r.state.Head
	for low < high {
		middle := low + (high-low)/2 + 1
		first, err := r.q.FirstPlaceFrom(background, middle)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
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

func (t *tx) PlaceBefore(at time.Time) (wake.Seq, error) {
	if err := t.w.flush(); err != nil {
		return 0, err
	}
	return t.reader.PlaceBefore(at)
}

func (t *tx) PutReplay(r wake.Replay) error {
	return t.created(t.q.PutReplay(background, queries.PutReplayParams{
		Subscription: r.Subscription, Conversation: r.Conversation,
		FromSeq: int64(r.From), AfterSeq: int64(r.After), UntilSeq: int64(r.Until),
	}))
}

func (t *tx) AdvanceReplay(subscription string, to wake.Seq) error {
	_, err := t.changedRows(t.q.AdvanceReplay(background, queries.AdvanceReplayParams{Subscription: subscription, AfterSeq: int64(to)}))
	return err
}
