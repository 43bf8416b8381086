package sqlite

import (
	"cmp"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (t *tx) QueueDelivery(d wake.Delivery) error {
	_, err := t.queue(d)
	return err
}

// queue adds a delivery that is not queued yet, and reports whether it did.
func (t *tx) queue(d wake.Delivery) (bool, error) {
	queued, err := t.changedRows(t.q.QueueDelivery(background, queries.QueueDeliveryParams{
		Webhook: d.Webhook, Seq: int64(d.Seq), Kind: string(d.Kind), Attempts: int64(d.Attempts), NextAt: micros(d.NextAt), Error: d.Error,
	}))
	if err != nil || !queued {
		return false, err
	}
	if d.Kind == wake.DeliveryOccurrence {
		if err := t.oweToo(d.Seq, d.Webhook); err != nil {
			return false, err
		}
	}
	return true, t.changed(t.q.HastenWebhook(background, queries.HastenWebhookParams{ID: d.Webhook, DueAt: nullInt(micros(d.NextAt))}))
}

func (t *tx) RequeueDelivery(d wake.Delivery) error {
	d.Attempts, d.Error = 0, ""
	queued, err := t.queue(d)
	if err != nil || queued {
		return err
	}
	restarted, err := t.changedRows(t.q.RestartDelivery(background, queries.RestartDeliveryParams{
		Webhook: d.Webhook, Seq: int64(d.Seq), Kind: string(d.Kind), NextAt: micros(d.NextAt),
	}))
	if err != nil || !restarted {
		return err
	}
	return t.refresh(d.Webhook)
}

// atOnce is when something is due that comes before all else: a moment after the zero time, which would be none.
var atOnce = fromMicros(1)

func (t *tx) TrimDeliveries(webhook string, most int) (int, error) {
	queued, err := t.q.CountQueued(background, webhook)
	surplus := queued - atLeastZero(most)
	if err != nil || surplus <= 0 {
		return 0, t.fault(err)
	}
	dropped, err := t.q.DropLowest(background, queries.DropLowestParams{Webhook: webhook, Max: surplus})
	if err := t.changed(err); err != nil {
		return 0, err
	}
	for _, seq := range dropped {
		if err := t.releaseDelivery(webhook, wake.Seq(seq)); err != nil {
			return 0, err
		}
	}
	return len(dropped), t.queueGap(webhook)
}

// queueGap has a webhook told that some of what it was owed will not come, and sets when its next delivery is due.
func (t *tx) queueGap(webhook string) error {
	if err := t.changed(t.q.DropIdleGaps(background, webhook)); err != nil {
		return err
	}
	through, err := t.Watermark(webhook)
	if err != nil {
		return err
	}
	if _, err := t.queue(wake.Delivery{Webhook: webhook, Seq: through, Kind: wake.DeliveryGap, NextAt: atOnce}); err != nil {
		return err
	}
	return t.refresh(webhook)
}

// ClaimDeliveries asks the webhooks that are due first, as many as deliveries are wanted: a delivery among the earliest is
// one of theirs. So it costs no more when a webhook has a long queue, or many are waiting for a retry.
func (t *tx) ClaimDeliveries(q store.ClaimQuery) ([]wake.Delivery, error) {
	hosts, err := list(q.ExceptHosts)
	if err != nil {
		return nil, err
	}
	webhooks, err := t.q.DueWebhooks(background, queries.DueWebhooksParams{
		Now: nullInt(micros(q.Now)), ExceptHosts: hosts, Max: atLeastZero(q.Limit),
	})
	if err != nil {
		return nil, t.fault(err)
	}
	var due []wake.Delivery
	for _, id := range webhooks {
		of, err := t.dueOf(id, q.Now, q.PerWebhook)
		if err != nil {
			return nil, err
		}
		due = append(due, of...)
	}
	slices.SortStableFunc(due, func(a, b wake.Delivery) int {
		return cmp.Or(a.NextAt.Compare(b.NextAt), cmp.Compare(a.Seq, b.Seq))
	})
	due = due[:min(len(due), max(q.Limit, 0))]
	for i := range due {
		if err := t.claim(&due[i], q.Lease); err != nil {
			return nil, err
		}
	}
	for _, id := range webhooks {
		err := t.q.RefreshClaimed(background, queries.RefreshClaimedParams{ID: id, Now: micros(q.Now), Most: atLeastZero(q.PerWebhook)})
		if err := t.changed(err); err != nil {
			return nil, err
		}
	}
	return due, nil
}

// claim takes one delivery.
func (t *tx) claim(d *wake.Delivery, lease time.Time) error {
	row, err := t.q.ClaimDelivery(background, queries.ClaimDeliveryParams{
		Webhook: d.Webhook, Seq: int64(d.Seq), Kind: string(d.Kind), NextAt: micros(lease),
	})
	d.NextAt, d.Claim, d.Watermark = fromMicros(micros(lease)), row.Claim, wake.Seq(row.Watermark.Int64)
	return t.changed(err)
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
		Webhook: d.Webhook, Seq: int64(d.Seq), Kind: string(d.Kind), Claim: d.Claim,
		Attempts: int64(d.Attempts), NextAt: micros(d.NextAt), Error: d.Error,
	}))
	if err != nil || !held {
		return false, err
	}
	return true, t.refresh(d.Webhook)
}

func (t *tx) FinishDelivery(d wake.Delivery) (bool, error) {
	held, err := t.changedRows(t.q.FinishDelivery(background, queries.FinishDeliveryParams{
		Webhook: d.Webhook, Seq: int64(d.Seq), Kind: string(d.Kind), Claim: d.Claim,
	}))
	if err != nil || !held {
		return false, err
	}
	if d.Kind == wake.DeliveryOccurrence {
		if err := t.releaseDelivery(d.Webhook, d.Seq); err != nil {
			return false, err
		}
	}
	return true, t.refresh(d.Webhook)
}
