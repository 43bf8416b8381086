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
		return t.w.cache.webhooks.get(key, t.webhooksTo)
	})
}

func (t *tx) PutWebhook(w wake.Webhook) error {
	row, err := webhookRow(w)
	if err != nil {
		return err
	}
	t.w.cache.webhooks.forgetRow(w.ID)
	t.w.cache.webhooks.forget(topicKey{w.App, w.Topic})
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
	t.w.cache.webhooks.forget(topicKey{gone.App, gone.Topic})
	return true, nil
}

func (t *tx) QueueDelivery(d wake.Delivery) error {
	queued, err := t.changedRows(t.q.QueueDelivery(background, queries.QueueDeliveryParams{
		Webhook: d.Webhook, Seq: int64(d.Seq), Attempts: int64(d.Attempts), NextAt: micros(d.NextAt), Error: d.Error,
	}))
	if err != nil || !queued {
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
		rows, err := t.q.DueDeliveries(background, queries.DueDeliveriesParams{
			Webhook: id, Now: micros(now), Max: atLeastZero(perWebhook),
		})
		of, err := convert(rows, t.fault(err), sure(toDelivery))
		if err != nil {
			return nil, err
		}
		due = append(due, of...)
	}
	slices.SortStableFunc(due, func(a, b wake.Delivery) int {
		return cmp.Or(a.NextAt.Compare(b.NextAt), cmp.Compare(a.Seq, b.Seq))
	})
	due = due[:min(len(due), max(limit, 0))]
	claimed := map[string]bool{}
	for i := range due {
		d := &due[i]
		err := t.q.PostponeDelivery(background, queries.PostponeDeliveryParams{
			Webhook: d.Webhook, Seq: int64(d.Seq), NextAt: micros(lease),
		})
		if err := t.changed(err); err != nil {
			return nil, err
		}
		d.NextAt = fromMicros(micros(lease))
		claimed[d.Webhook] = true
	}
	for id := range claimed {
		if err := t.refresh(id); err != nil {
			return nil, err
		}
	}
	return due, nil
}

// refresh sets when the webhook's next delivery is due.
func (t *tx) refresh(webhook string) error {
	return t.changed(t.q.RefreshWebhook(background, webhook))
}

func (t *tx) RetryDelivery(d wake.Delivery) error {
	there, err := t.changedRows(t.q.RetryDelivery(background, queries.RetryDeliveryParams{
		Webhook: d.Webhook, Seq: int64(d.Seq), Attempts: int64(d.Attempts), NextAt: micros(d.NextAt), Error: d.Error,
	}))
	if err != nil || !there {
		return err
	}
	return t.refresh(d.Webhook)
}

func (t *tx) FinishDelivery(webhook string, seq wake.Seq) error {
	there, err := t.changedRows(t.q.FinishDelivery(background, queries.FinishDeliveryParams{Webhook: webhook, Seq: int64(seq)}))
	if err != nil || !there {
		return err
	}
	return t.refresh(webhook)
}
