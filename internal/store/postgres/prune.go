package postgres

import (
	"slices"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
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
	if err := t.flush(); err != nil {
		return 0, false, err
	}
	oldest, err := t.q.OldestOccurrences(background, most(limit))
	if err != nil {
		return 0, false, t.fault(err)
	}
	var gone []placed
	for _, row := range oldest {
		if row.At < before {
			gone = append(gone, placed{row.Seq, row.App, splitTopics(row.Topics)})
		}
	}
	if len(gone) == 0 {
		return 0, false, nil
	}
	t.state.Horizon = max(t.state.Horizon, gone[len(gone)-1].seq)
	missing, err := t.removeOccurrences(gone)
	if err != nil {
		return 0, false, err
	}
	for _, id := range missing {
		if err := t.queueGap(id); err != nil {
			return 0, false, err
		}
	}
	return len(gone), len(oldest) == limit, nil
}

func (t *tx) pruneSubscriptions(before int64, limit int) (more bool, err error) {
	ids, err := t.q.DeleteSubscriptionsEndedBefore(background, queries.DeleteSubscriptionsEndedBeforeParams{Before: before, Max: most(limit)})
	if err != nil || len(ids) == 0 {
		return false, t.fault(err)
	}
	t.note()
	return len(ids) == limit, t.releaseHolders(ids)
}

// pruneWebhooks first empties the queues of expired webhooks, in steps too, then removes those whose queue is empty.
func (t *tx) pruneWebhooks(before int64, limit int) (more bool, err error) {
	queued, err := t.q.DeleteDeliveriesExpiredBefore(background, queries.DeleteDeliveriesExpiredBeforeParams{Before: before, Max: most(limit)})
	if err != nil {
		return false, t.fault(err)
	}
	if err := t.refresh(slices.Clone(queued)); err != nil {
		return false, err
	}
	idle, err := t.q.IdleWebhooksExpiredBefore(background, queries.IdleWebhooksExpiredBeforeParams{Before: before, Max: most(limit)})
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
	ended, err := t.q.WebhooksEndedBefore(background, queries.WebhooksEndedBeforeParams{Before: before, Max: most(limit)})
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
	oldest, err := t.q.OldestAttempts(background, most(limit))
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
		Before: before, AfterSeenAt: cursor.seenAt, AfterN: cursor.n, Max: most(limit),
	})
	if err != nil {
		return false, t.fault(err)
	}
	var idle []string
	for _, row := range rows {
		if !row.Subscribed {
			idle = append(idle, row.ID)
		}
	}
	if err := t.deleteConversations(idle); err != nil {
		return false, err
	}
	if len(rows) < limit {
		*cursor = pruneCursor{}
		return false, nil
	}
	last := rows[len(rows)-1]
	*cursor = pruneCursor{last.SeenAt, last.N}
	return true, nil
}

// deleteConversations removes conversations and their subscriptions; of live ones the caller has forgotten the topics.
func (t *tx) deleteConversations(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	if err := t.releaseConversations(ids); err != nil {
		return err
	}
	return t.changed(t.q.DeleteConversations(background, ids))
}
