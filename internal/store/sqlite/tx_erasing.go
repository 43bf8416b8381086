package sqlite

import (
	"math"
	"slices"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (r *reader) Erasures() (store.Erasures, error) {
	row, err := r.q.Erasures(background)
	return store.Erasures{Made: row.Made, Scrubbed: row.Scrubbed}, r.fault(err)
}

func (t *tx) NoteScrubbed(erasures int64) error {
	_, err := t.changedRows(t.q.NoteScrubbed(background, erasures))
	return err
}

// Owe writes the occurrence at once: the transaction of another job may erase it before this one's is committed.
func (t *tx) Owe(seq wake.Seq, subscriptions []wake.Subscription, webhooks []wake.Webhook) error {
	t.w.cache.nothingOwed = false
	for _, s := range subscriptions {
		err := t.q.Owe(background, queries.OweParams{Seq: int64(seq), Holder: s.ID, Conversation: s.Conversation})
		if err := t.changed(err); err != nil {
			return err
		}
	}
	for _, w := range webhooks {
		if err := t.changed(t.q.Owe(background, queries.OweParams{Seq: int64(seq), Holder: w.ID})); err != nil {
			return err
		}
	}
	return t.w.flush()
}

// oweToo has a webhook owed what lies at a place, if that is fleeting.
func (t *tx) oweToo(seq wake.Seq, webhook string) error {
	if none, err := t.nothingOwed(); none || err != nil {
		return err
	}
	return t.changed(t.q.OweToo(background, queries.OweTooParams{Seq: int64(seq), Holder: webhook}))
}

// nothingOwed reports that nothing in the log is fleeting, as it is with most apps: then there is nothing to release either, and
// no need to look for it with each position that moves.
func (t *tx) nothingOwed() (bool, error) {
	if t.w.cache.nothingOwed {
		return true, nil
	}
	owed, err := t.q.AnythingOwed(background)
	t.w.cache.nothingOwed = err == nil && !owed
	return t.w.cache.nothingOwed, t.fault(err)
}

// releaseConversation takes back what the conversation's subscriptions are owed up to a place.
func (t *tx) releaseConversation(id string, through wake.Seq) error {
	if none, err := t.nothingOwed(); none || err != nil {
		return err
	}
	seqs, err := t.q.ReleaseConversation(background, queries.ReleaseConversationParams{Conversation: id, Through: int64(through)})
	return t.released(seqs, err)
}

// releaseHolder takes back all that a subscription or webhook is owed.
func (t *tx) releaseHolder(id string) error {
	if none, err := t.nothingOwed(); none || err != nil {
		return err
	}
	seqs, err := t.q.ReleaseHolder(background, id)
	return t.released(seqs, err)
}

// releaseDelivery takes back what a webhook is owed at one place.
func (t *tx) releaseDelivery(webhook string, seq wake.Seq) error {
	if none, err := t.nothingOwed(); none || err != nil {
		return err
	}
	n, err := t.q.ReleaseDelivery(background, queries.ReleaseDeliveryParams{Seq: int64(seq), Holder: webhook})
	if err != nil || n == 0 {
		return t.fault(err)
	}
	return t.released([]int64{int64(seq)}, nil)
}

// released erases what lies at these places unless somebody is owed it still.
func (t *tx) released(seqs []int64, err error) error {
	if err != nil || len(seqs) == 0 {
		return t.fault(err)
	}
	t.wrote = true
	slices.Sort(seqs)
	for _, seq := range slices.Compact(seqs) {
		owed, err := t.q.Owed(background, seq)
		if err != nil {
			return t.fault(err)
		}
		if owed {
			continue
		}
		err = t.q.EraseOccurrence(background, queries.EraseOccurrenceParams{Kind: string(wake.KindErased), Seq: seq})
		if err := t.changed(err); err != nil {
			return err
		}
		if err := t.countErasure(); err != nil {
			return err
		}
	}
	return nil
}

// countErasure notes that something is to be scrubbed.
func (t *tx) countErasure() error { return t.changed(t.q.CountErasure(background)) }

// everything is after the last place there can be.
const everything wake.Seq = math.MaxInt64
