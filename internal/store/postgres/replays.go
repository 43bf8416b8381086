package postgres

import (
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
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

func (t *tx) PutReplay(r wake.Replay) error {
	if _, err := t.Subscription(r.Subscription); err != nil {
		return err
	}
	return t.created(t.q.PutReplay(background, queries.PutReplayParams{
		Subscription: r.Subscription, Conversation: r.Conversation,
		FromSeq: int64(r.From), AfterSeq: int64(r.After), UntilSeq: int64(r.Until),
	}))
}

func (t *tx) AdvanceReplay(subscription string, to wake.Seq) error {
	_, err := t.changedRows(t.q.AdvanceReplay(background, queries.AdvanceReplayParams{Subscription: subscription, AfterSeq: int64(to)}))
	return err
}
