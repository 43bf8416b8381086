package sqlite

import (
	"slices"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
)

// A pruneCursor is how far Prune has looked through the conversations: it passes by those that stay, step after step, and
// starts again when it has seen all. It is only in memory.
type pruneCursor struct{ seenAt, n int64 }

func (t *tx) Prune(before time.Time, limit int) (more bool, err error) {
	steps := []func(before int64, limit int) (bool, error){
		t.pruneLog, t.pruneSubscriptions, t.pruneWebhooks, t.pruneEndedWebhooks, t.pruneAttempts, t.pruneConversations,
	}
	for _, step := range steps {
		left, err := step(micros(before), max(limit, 1))
		if err != nil {
			return false, err
		}
		more = more || left
	}
	return more, nil
}

func (t *tx) PruneLog(before time.Time, limit int) (removed int, err error) {
	removed, _, err = t.pruneOccurrences(micros(before), max(limit, 1))
	return removed, err
}

func (t *tx) pruneLog(before int64, limit int) (more bool, err error) {
	_, more, err = t.pruneOccurrences(before, limit)
	return more, err
}

// pruneOccurrences looks at the oldest part of the log only. An occurrence there that is not old, because a clock was
// wrong, stays and is looked at again; but its topics no longer name it once the horizon has passed it.
func (t *tx) pruneOccurrences(before int64, limit int) (removed int, more bool, err error) {
	oldest, err := t.q.OldestOccurrences(background, int64(limit))
	if err != nil {
		return 0, false, t.fault(err)
	}
	full := len(oldest) == limit
	old := slices.DeleteFunc(oldest, func(row queries.OldestOccurrencesRow) bool { return row.At >= before })
	if len(old) == 0 {
		return 0, false, nil
	}
	if err := t.settle(); err != nil {
		return 0, false, err
	}
	topics, missing := map[topicKey]bool{}, map[string]bool{}
	for _, row := range old {
		if err := t.changed(t.q.DeleteOccurrence(background, row.Seq)); err != nil {
			return 0, false, err
		}
		webhooks, err := t.dropDeliveriesOf(row.Seq)
		if err != nil {
			return 0, false, err
		}
		for _, id := range webhooks {
			missing[id] = true
		}
		for _, topic := range splitTopics(row.Topics) {
			topics[topicKey{row.App, topic}] = true
		}
	}
	horizon := old[len(old)-1].Seq
	for key := range topics {
		err := t.q.DeleteRuns(background, queries.DeleteRunsParams{App: key.app, Topic: key.topic, Through: horizon})
		if err := t.changed(err); err != nil {
			return 0, false, err
		}
	}
	t.state.Horizon = max(t.state.Horizon, horizon)
	for id := range missing {
		if err := t.queueGap(id); err != nil {
			return 0, false, err
		}
	}
	return len(old), full, nil
}

// dropDeliveriesOf removes the deliveries of an occurrence that is removed, and what anybody is owed of it: there is nothing
// left to send. It returns the webhooks that were to have it.
func (t *tx) dropDeliveriesOf(seq int64) ([]string, error) {
	if _, err := t.changedRows(t.q.ReleasePlace(background, seq)); err != nil {
		return nil, err
	}
	webhooks, err := t.q.DeleteDeliveriesOf(background, seq)
	return webhooks, t.changed(err)
}

func (t *tx) pruneSubscriptions(before int64, limit int) (more bool, err error) {
	ids, err := t.q.DeleteSubscriptionsEndedBefore(background, queries.DeleteSubscriptionsEndedBeforeParams{
		Before: before, Max: int64(limit),
	})
	if _, err := t.changedRows(int64(len(ids)), err); err != nil {
		return false, err
	}
	for _, id := range ids {
		if err := t.releaseHolder(id); err != nil {
			return false, err
		}
	}
	return len(ids) == limit, nil
}

// pruneWebhooks first empties the queues of expired webhooks, in steps too, then removes those whose queue is empty.
func (t *tx) pruneWebhooks(before int64, limit int) (more bool, err error) {
	queued, err := t.q.DeliveriesExpiredBefore(background, queries.DeliveriesExpiredBeforeParams{Before: before, Max: int64(limit)})
	if err != nil {
		return false, t.fault(err)
	}
	for _, d := range queued {
		if _, err := t.FinishDelivery(toDelivery(d)); err != nil {
			return false, err
		}
	}
	idle, err := t.q.IdleWebhooksExpiredBefore(background, queries.IdleWebhooksExpiredBeforeParams{Before: before, Max: int64(limit)})
	if err != nil {
		return false, t.fault(err)
	}
	for _, id := range idle {
		if _, err := t.DeleteWebhook(id); err != nil {
			return false, err
		}
	}
	return len(queued) == limit || len(idle) == limit, nil
}

func (t *tx) pruneEndedWebhooks(before int64, limit int) (more bool, err error) {
	ended, err := t.q.WebhooksEndedBefore(background, queries.WebhooksEndedBeforeParams{Before: before, Max: int64(limit)})
	if err != nil {
		return false, t.fault(err)
	}
	for _, id := range ended {
		if _, err := t.DeleteWebhook(id); err != nil {
			return false, err
		}
	}
	return len(ended) == limit, nil
}

// pruneAttempts looks at the first attempts only, and removes them up to the last that is old or one too many.
func (t *tx) pruneAttempts(before int64, limit int) (more bool, err error) {
	oldest, err := t.q.OldestAttempts(background, int64(limit))
	if err != nil || len(oldest) == 0 {
		return false, t.fault(err)
	}
	last, err := t.q.LastAttempt(background)
	if err != nil {
		return false, t.fault(err)
	}
	through := int64(0)
	for _, row := range oldest {
		if row.At < before || row.N <= last-store.MostAttempts {
			through = row.N
		}
	}
	if through == 0 {
		return false, nil
	}
	return through == oldest[len(oldest)-1].N && len(oldest) == limit, t.changed(t.q.DeleteAttemptsThrough(background, through))
}

func (t *tx) pruneConversations(before int64, limit int) (more bool, err error) {
	cursor := &t.w.seen
	rows, err := t.q.ConversationsSeenBefore(background, queries.ConversationsSeenBeforeParams{
		Before: before, AfterSeenAt: cursor.seenAt, AfterN: cursor.n, Max: int64(limit),
	})
	if err != nil {
		return false, t.fault(err)
	}
	for _, row := range rows {
		if row.Subscribed {
			continue
		}
		if err := t.deleteConversation(row.ID, nil); err != nil {
			return false, err
		}
	}
	if len(rows) < limit {
		*cursor = pruneCursor{}
		return false, nil
	}
	last := rows[len(rows)-1]
	*cursor = pruneCursor{last.SeenAt, last.N}
	return true, nil
}
