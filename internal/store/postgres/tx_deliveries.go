package postgres

import (
	"slices"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (t *tx) QueueDelivery(d wake.Delivery) error {
	_, err := t.queue(d)
	return err
}

// queue adds a delivery that is not queued yet, and reports whether it did.
func (t *tx) queue(d wake.Delivery) (bool, error) {
	row, err := t.q.QueueDelivery(background, queries.QueueDeliveryParams{
		Webhook: d.Webhook, Seq: int64(d.Seq), Kind: string(d.Kind), Attempts: int64(d.Attempts), NextAt: micros(d.NextAt), Error: d.Error,
	})
	switch {
	case err != nil:
		return false, t.fault(err)
	case !row.There:
		return false, store.ErrNotFound
	case row.Queued:
		t.note()
	}
	return row.Queued, nil
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
	return t.refresh([]string{d.Webhook})
}

// atOnce is when something is due that comes before all else: a moment after the zero time, which would be none.
var atOnce = fromMicros(1)

func (t *tx) TrimDeliveries(webhook string, most int) (int, error) {
	queued, err := t.q.CountQueued(background, webhook)
	surplus := queued - int64(max(most, 0))
	if err != nil || surplus <= 0 {
		return 0, t.fault(err)
	}
	row, err := t.q.DropLowest(background, queries.DropLowestParams{Webhook: webhook, Max: surplus})
	if err := t.changed(err); err != nil {
		return 0, err
	}
	if err := t.erase(row.Released); err != nil {
		return 0, err
	}
	return int(row.Dropped), t.queueGap(webhook)
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
	return t.refresh([]string{webhook})
}

func (t *tx) ClaimDeliveries(q store.ClaimQuery) ([]wake.Delivery, error) {
	webhooks, err := t.q.DueWebhooks(background, queries.DueWebhooksParams{
		Now: someInt(micros(q.Now)), ExceptHosts: list(q.ExceptHosts), Max: most(q.Limit),
	})
	if err != nil || len(webhooks) == 0 {
		return nil, t.fault(err)
	}
	rooms, err := t.rooms(webhooks, q.Now, q.PerWebhook)
	if err != nil {
		return nil, err
	}
	due, err := t.q.DueDeliveries(background, queries.DueDeliveriesParams{
		Webhooks: webhooks, Rooms: rooms, Now: micros(q.Now), Max: most(q.Limit),
	})
	if err != nil {
		return nil, t.fault(err)
	}
	claim := queries.ClaimDeliveriesParams{Lease: micros(q.Lease)}
	order := map[queries.DueDeliveriesRow]int{}
	for i, d := range due {
		claim.Webhooks, claim.Seqs, claim.Kinds = append(claim.Webhooks, d.Webhook), append(claim.Seqs, d.Seq), append(claim.Kinds, d.Kind)
		order[d] = i
	}
	rows, err := t.q.ClaimDeliveries(background, claim)
	if err := t.changed(err); err != nil {
		return nil, err
	}
	claimed := make([]wake.Delivery, len(due))
	for _, row := range rows {
		claimed[order[queries.DueDeliveriesRow{Webhook: row.Webhook, Seq: row.Seq, Kind: row.Kind}]] = toDelivery(row)
	}
	return claimed, t.changed(t.q.RefreshClaimed(background, queries.RefreshClaimedParams{
		Ids: webhooks, Now: micros(q.Now), Most: int64(most(q.PerWebhook)),
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
		Webhook: d.Webhook, Seq: int64(d.Seq), Kind: string(d.Kind), Claim: d.Claim,
		Attempts: int64(d.Attempts), NextAt: someInt(micros(d.NextAt)), Error: d.Error,
	}))
}

func (t *tx) FinishDelivery(d wake.Delivery) (bool, error) {
	row, err := t.q.FinishDelivery(background, queries.FinishDeliveryParams{
		Webhook: d.Webhook, Seq: int64(d.Seq), Kind: string(d.Kind), Claim: d.Claim,
	})
	if err != nil || !row.Finished {
		return false, t.fault(err)
	}
	t.note()
	if row.Released {
		return true, t.erase([]int64{int64(d.Seq)})
	}
	return true, nil
}
