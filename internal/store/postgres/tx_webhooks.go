package postgres

import (
	"errors"
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
	if w.EndedAt.IsZero() {
		if err := t.beginAnew(w.ID); err != nil {
			return err
		}
	}
	t.w.outdates = true
	t.w.cache.webhooks.ForgetRow(w.ID)
	t.w.cache.webhooks.Forget(topicKey{w.App, w.Topic})
	return t.changed(t.q.PutWebhook(background, row))
}

// beginAnew drops what a webhook that has ended left behind.
func (t *tx) beginAnew(id string) error {
	ended, err := t.q.WebhookEnded(background, id)
	if err != nil || !ended {
		return t.fault(err)
	}
	if err := t.dropDeliveries(id); err != nil {
		return err
	}
	return t.changed(t.q.DeleteHealth(background, id))
}

// dropDeliveries empties a webhook's queue.
func (t *tx) dropDeliveries(id string) error {
	if err := t.changed(t.q.DropDeliveries(background, id)); err != nil {
		return err
	}
	if err := t.releaseHolders([]string{id}); err != nil {
		return err
	}
	return t.refresh([]string{id})
}

func (t *tx) EndWebhook(id, reason string, at time.Time) (bool, error) {
	ended, err := t.q.EndWebhook(background, queries.EndWebhookParams{ID: id, EndedAt: micros(at), EndReason: reason})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err := t.changed(err); err != nil {
		return false, err
	}
	t.w.outdates = true
	t.w.cache.webhooks.Forget(topicKey{ended.App, string(ended.Topic)})
	if err := t.dropDeliveries(id); err != nil {
		return false, err
	}
	return true, t.QueueDelivery(wake.Delivery{Webhook: id, Seq: wake.Seq(t.state.Head), Kind: wake.DeliveryTerminated, NextAt: at})
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

func (t *tx) PutHealth(h wake.Health) error {
	_, err := t.changedRows(t.q.PutHealth(background, queries.PutHealthParams{
		Webhook: h.Webhook, LastDeliveryAt: micros(h.LastDeliveryAt), LastError: h.LastError, FailedSince: micros(h.FailedSince),
		ThrottledUntil: micros(h.ThrottledUntil), WindowAt: micros(h.WindowAt), Attempts: int64(h.Attempts), Failures: int64(h.Failures),
	}))
	return err
}

func (t *tx) RecordAttempt(a wake.Attempt) error {
	nth, err := t.q.RecordAttempt(background, queries.RecordAttemptParams{
		Webhook: a.Webhook, Seq: int64(a.Seq), Kind: string(a.Kind), Number: int64(a.Number), At: micros(a.At),
		Took: a.Took.Microseconds(), Status: int64(a.Status), Reason: a.Reason, Outcome: a.Outcome, NextAt: micros(a.NextAt),
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err := t.changed(err); err != nil || nth <= store.MostAttemptsOfWebhook {
		return err
	}
	return t.changed(t.q.DropFirstAttempts(background, queries.DropFirstAttemptsParams{
		Webhook: a.Webhook, Through: nth - store.MostAttemptsOfWebhook,
	}))
}
