package sqlite

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (t *tx) WebhooksTo(app string, topics []string) ([]wake.Webhook, error) {
	return onTopics(app, topics, func(key topicKey) (*ordered[wake.Webhook], error) {
		return t.w.cache.webhooks.Get(key, t.webhooksTo)
	})
}

func (t *tx) PutWebhook(w wake.Webhook) error {
	row, err := webhookRow(w)
	if err != nil {
		return err
	}
	t.w.cache.webhooks.ForgetRow(w.ID)
	t.w.cache.webhooks.Forget(topicKey{w.App, w.Topic})
	return t.changed(t.q.PutWebhook(background, row))
}

func (t *tx) DeleteWebhook(id string) (bool, error) {
	gone, err := t.q.DeleteWebhook(background, id)
	if err := t.changed(err); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		return false, err
	}
	t.w.cache.webhooks.Forget(topicKey{gone.App, gone.Topic})
	return true, t.releaseHolder(id)
}

func (t *tx) QueueDelivery(d wake.Delivery) error {
	queued, err := t.changedRows(t.q.QueueDelivery(background, queries.QueueDeliveryParams{
		Webhook: d.Webhook, Seq: int64(d.Seq), Attempts: int64(d.Attempts), NextAt: micros(d.NextAt), Error: d.Error,
	}))
	if err != nil || !queued {
		return err
	}
	if err := t.oweToo(d.Seq, d.Webhook); err != nil {
		return err
	}
	return t.changed(t.q.HastenWebhook(background, queries.HastenWebhookParams{ID: d.Webhook, DueAt: nullInt(micros(d.NextAt))}))
}

// ClaimDeliveries asks the webhooks that are due first, as many as deliveries are wanted: a delivery among the earliest is
// one of theirs. So it costs no more when a webhook has a long queue, or many are waiting for a retry.
func (t *tx) ClaimDeliveries(now, lease time.Time, limit, perWebhook int) ([]wake.Delivery, error) {
	webhooks, err := t.q.DueWebhooks(background, queries.DueWebhooksParams{Now: nullInt(micros(now)), Max: atLeastZero(limit)})
	if err != nil {
		return nil, t.fault(err)
	}
	var due []wake.Delivery
	for _, id := range webhooks {
		of, err := t.dueOf(id, now, perWebhook)
		if err != nil {
			return nil, err
		}
		due = append(due, of...)
	}
	slices.SortStableFunc(due, func(a, b wake.Delivery) int {
		return cmp.Or(a.NextAt.Compare(b.NextAt), cmp.Compare(a.Seq, b.Seq))
	})
	due = due[:min(len(due), max(limit, 0))]
	for i := range due {
		d := &due[i]
		d.NextAt = fromMicros(micros(lease))
		d.Claim, err = t.q.ClaimDelivery(background, queries.ClaimDeliveryParams{Webhook: d.Webhook, Seq: int64(d.Seq), NextAt: micros(lease)})
		if err := t.changed(err); err != nil {
			return nil, err
		}
	}
	for _, id := range webhooks {
		err := t.q.RefreshClaimed(background, queries.RefreshClaimedParams{ID: id, Now: micros(now), Most: atLeastZero(perWebhook)})
		if err := t.changed(err); err != nil {
			return nil, err
		}
	}
	return due, nil
}

// dueOf lists the webhook's due deliveries, as many as can be claimed beside those that are.
func (t *tx) dueOf(webhook string, now time.Time, most int) ([]wake.Delivery, error) {
	leased, err := t.q.LeasedDeliveries(background, queries.LeasedDeliveriesParams{Webhook: webhook, Now: micros(now)})
	if err != nil {
		return nil, t.fault(err)
	}
	rows, err := t.q.DueDeliveries(background, queries.DueDeliveriesParams{
		Webhook: webhook, Now: micros(now), Max: atLeastZero(most - int(leased)),
	})
	return convert(rows, t.fault(err), sure(toDelivery))
}

// refresh sets when the webhook's next delivery is due.
func (t *tx) refresh(webhook string) error {
	return t.changed(t.q.RefreshWebhook(background, webhook))
}

func (t *tx) RetryDelivery(d wake.Delivery) (bool, error) {
	held, err := t.changedRows(t.q.RetryDelivery(background, queries.RetryDeliveryParams{
		Webhook: d.Webhook, Seq: int64(d.Seq), Claim: d.Claim, Attempts: int64(d.Attempts), NextAt: micros(d.NextAt), Error: d.Error,
	}))
	if err != nil || !held {
		return false, err
	}
	return true, t.refresh(d.Webhook)
}

func (t *tx) FinishDelivery(d wake.Delivery) (bool, error) {
	held, err := t.changedRows(t.q.FinishDelivery(background, queries.FinishDeliveryParams{
		Webhook: d.Webhook, Seq: int64(d.Seq), Claim: d.Claim,
	}))
	if err != nil || !held {
		return false, err
	}
	if err := t.releaseDelivery(d.Webhook, d.Seq); err != nil {
		return false, err
	}
	return true, t.refresh(d.Webhook)
}
