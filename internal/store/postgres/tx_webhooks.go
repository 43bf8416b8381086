package postgres

import (
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
	"github.com/rouse-dev/rouse/internal/store/topiccache"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (t *tx) WebhooksTo(app string, topics []string) ([]wake.Webhook, error) {
	return topiccache.Join(topics, func(topic string) (*topiccache.Rows[wake.Webhook], error) {
		return t.w.cache.webhooks.Get(topicKey{app, topic}, t.webhooksTo)
	})
}

func (t *tx) webhooksTo(key topicKey) (*topiccache.Rows[wake.Webhook], error) {
	rows, err := t.q.WebhooksTo(background, queries.WebhooksToParams{App: key.app, Topics: raw([]string{key.topic})})
	if err != nil {
		return nil, t.fault(err)
	}
	return topiccache.InOrder(rows, toWebhook, func(row queries.Webhook) int64 { return row.N })
}

func (t *tx) PutWebhook(w wake.Webhook) error {
	if err := t.needApp(w.App); err != nil {
		return err
	}
	row, err := webhookRow(w)
	if err != nil {
		return err
	}
	t.w.outdates = true
	t.w.cache.webhooks.ForgetRow(w.ID)
	t.w.cache.webhooks.Forget(topicKey{w.App, w.Topic})
	return t.changed(t.q.PutWebhook(background, row))
}

func (t *tx) DeleteWebhook(id string) (bool, error) {
	gone, err := t.q.DeleteWebhook(background, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err := t.changed(err); err != nil {
		return false, err
	}
	t.w.outdates = true
	t.w.cache.webhooks.Forget(topicKey{gone.App, string(gone.Topic)})
	return true, t.releaseHolders([]string{id})
}

func (t *tx) QueueDelivery(d wake.Delivery) error {
	row, err := t.q.QueueDelivery(background, queries.QueueDeliveryParams{
		Webhook: d.Webhook, Seq: int64(d.Seq), Attempts: int64(d.Attempts), NextAt: micros(d.NextAt), Error: d.Error,
	})
	switch {
	case err != nil:
		return t.fault(err)
	case !row.There:
		return store.ErrNotFound
	case row.Queued:
		t.note()
	}
	return nil
}

func (t *tx) ClaimDeliveries(now, lease time.Time, limit, perWebhook int) ([]wake.Delivery, error) {
	webhooks, err := t.q.DueWebhooks(background, queries.DueWebhooksParams{Now: someInt(micros(now)), Max: most(limit)})
	if err != nil || len(webhooks) == 0 {
		return nil, t.fault(err)
	}
	rooms, err := t.rooms(webhooks, now, perWebhook)
	if err != nil {
		return nil, err
	}
	due, err := t.q.DueDeliveries(background, queries.DueDeliveriesParams{
		Webhooks: webhooks, Rooms: rooms, Now: micros(now), Max: most(limit),
	})
	if err != nil {
		return nil, t.fault(err)
	}
	claim := queries.ClaimDeliveriesParams{Lease: micros(lease)}
	order := map[queries.DueDeliveriesRow]int{}
	for i, d := range due {
		claim.Webhooks, claim.Seqs = append(claim.Webhooks, d.Webhook), append(claim.Seqs, d.Seq)
		order[d] = i
	}
	rows, err := t.q.ClaimDeliveries(background, claim)
	if err := t.changed(err); err != nil {
		return nil, err
	}
	claimed := make([]wake.Delivery, len(due))
	for _, row := range rows {
		claimed[order[queries.DueDeliveriesRow{Webhook: row.Webhook, Seq: row.Seq}]] = toDelivery(row)
	}
	return claimed, t.changed(t.q.RefreshClaimed(background, queries.RefreshClaimedParams{
		Ids: webhooks, Now: micros(now), Most: int64(most(perWebhook)),
	}))
}

// rooms tells of each webhook how many deliveries can be claimed beside those that are.
func (t *tx) rooms(webhooks []string, now time.Time, perWebhook int) ([]int64, error) {
	rows, err := t.q.LeasedDeliveries(background, queries.LeasedDeliveriesParams{Webhooks: webhooks, Now: micros(now)})
	if err != nil {
		return nil, t.fault(err)
	}
	leased := map[string]int64{}
	for _, row := range rows {
		leased[row.Webhook] = row.Leased
	}
	rooms := make([]int64, len(webhooks))
	for i, id := range webhooks {
		rooms[i] = max(0, int64(most(perWebhook))-leased[id])
	}
	return rooms, nil
}

// refresh sets when these webhooks' next deliveries are due. It may change the order of the list.
func (t *tx) refresh(webhooks []string) error {
	if len(webhooks) == 0 {
		return nil
	}
	slices.Sort(webhooks)
	return t.changed(t.q.RefreshWebhooks(background, slices.Compact(webhooks)))
}

func (t *tx) RetryDelivery(d wake.Delivery) (bool, error) {
	return t.changedRows(t.q.RetryDelivery(background, queries.RetryDeliveryParams{
		Webhook: d.Webhook, Seq: int64(d.Seq), Claim: d.Claim, Attempts: int64(d.Attempts), NextAt: someInt(micros(d.NextAt)), Error: d.Error,
	}))
}

func (t *tx) FinishDelivery(d wake.Delivery) (bool, error) {
	row, err := t.q.FinishDelivery(background, queries.FinishDeliveryParams{Webhook: d.Webhook, Seq: int64(d.Seq), Claim: d.Claim})
	if err != nil || !row.Finished {
		return false, t.fault(err)
	}
	t.note()
	if row.Released {
		return true, t.erase([]int64{int64(d.Seq)})
	}
	return true, nil
}
