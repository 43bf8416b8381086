package postgres

import (
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (r *reader) Erasures() (store.Erasures, error) {
	return store.Erasures{Made: r.state.Erased, Scrubbed: r.state.Scrubbed}, nil
}

func (t *tx) NoteScrubbed(erasures int64) error {
	if erasures > t.state.Scrubbed {
		t.state.Scrubbed = erasures
		t.note()
	}
	return nil
}

// Owe writes the occurrence at once: another update may erase it within the same transaction.
func (t *tx) Owe(seq wake.Seq, subscriptions []wake.Subscription, webhooks []wake.Webhook) error {
	if len(subscriptions)+len(webhooks) == 0 {
		return nil
	}
	owe := queries.OweParams{Seq: int64(seq)}
	for _, s := range subscriptions {
		owe.Holders, owe.Conversations = append(owe.Holders, s.ID), append(owe.Conversations, s.Conversation)
	}
	for _, w := range webhooks {
		owe.Holders, owe.Conversations = append(owe.Holders, w.ID), append(owe.Conversations, "")
	}
	if err := t.changed(t.q.Owe(background, owe)); err != nil {
		return err
	}
	return t.flush()
}

// releaseConversations takes back what the subscriptions of conversations are owed.
func (t *tx) releaseConversations(ids []string) error {
	seqs, err := t.q.ReleaseConversations(background, ids)
	if err != nil {
		return t.fault(err)
	}
	return t.erase(seqs)
}

// releaseHolders takes back what subscriptions or webhooks are owed.
func (t *tx) releaseHolders(ids []string) error {
	seqs, err := t.q.ReleaseHolders(background, ids)
	if err != nil {
		return t.fault(err)
	}
	return t.erase(seqs)
}

// erase erases what lies at these places, where somebody was owed it, unless somebody still is.
func (t *tx) erase(seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	row, err := t.q.EraseUnowed(background, queries.EraseUnowedParams{Seqs: seqs, Kind: string(wake.KindErased)})
	if err != nil {
		return t.fault(err)
	}
	t.state.Erased += row.Erased
	t.state.Bytes -= row.Bytes
	t.note()
	return nil
}
