package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// maxRecords is how many outcomes are written in one transaction.
const maxRecords = 256

// When a webhook is suspended: nearly all of many attempts within a while failed, or all of some did for long.
const (
	healthWindow    = time.Hour
	manyAttempts    = 100
	failingPercent  = 95
	someAttempts    = 10
	longFailing     = 24 * time.Hour
	maxRetryAfter   = time.Hour // that an endpoint may ask for
	suspensionEntry = "its endpoint fails"
)

// recordAll writes down what became of deliveries, those that came out meanwhile in one transaction, until there are no more.
func (c *Core) recordAll(outcomes <-chan outcome) {
	for first := range outcomes {
		batch := []outcome{first}
		for len(batch) < maxRecords {
			select {
			case o, ok := <-outcomes:
				if ok {
					batch = append(batch, o)
					continue
				}
			default:
			}
			break
		}
		if c.recordSome(batch) == nil {
			c.hintDeliveries() // what is to be tried again is due at another time now
			continue
		}
		for _, o := range batch { // one that cannot be written keeps none of the others back
			if err := c.recordSome([]outcome{o}); err != nil {
				c.log.Error("a webhook delivery could not be recorded; it is made again", "subscription", o.delivery.Webhook, "error", err)
			}
		}
	}
}

// recordSome writes down some outcomes. Of a delivery that another has claimed since, nothing is.
func (c *Core) recordSome(batch []outcome) error {
	var r *recorder
	err := c.store.Update(context.Background(), func(tx store.Tx) error {
		r = &recorder{Core: c, tx: tx, at: now(), healths: map[string]wake.Health{}}
		for _, o := range batch {
			if err := r.record(o); err != nil {
				return err
			}
		}
		return r.keepHealths()
	})
	if err != nil {
		return err
	}
	for _, entry := range r.entries {
		c.feed.Put(entry)
	}
	for _, w := range r.suspended {
		c.log.Warn("a webhook is suspended: its endpoint fails; its client's next refresh revives it", "app", w.App, "subscription", w.ID)
		c.feed.Put(trace.Entry{Kind: trace.Suspended, App: w.App, Event: w.Event, Subscription: w.ID, Path: "webhook", Detail: suspensionEntry})
	}
	return nil
}

// A recorder writes outcomes down within one transaction.
type recorder struct {
	*Core
	tx        store.Tx
	at        time.Time
	healths   map[string]wake.Health // that changed
	entries   []trace.Entry
	suspended []wake.Webhook
}

func (r *recorder) record(o outcome) error {
	d := o.delivery
	switch o.is {
	case putOff:
		d.NextAt = o.next
		_, err := r.tx.RetryDelivery(d)
		return err
	case dropped:
		return r.drop(o)
	}
	d.Attempts++
	a := wake.Attempt{Webhook: d.Webhook, Seq: d.Seq, Kind: d.Kind, Number: d.Attempts, At: o.at, Took: o.took, Status: o.result.Status,
		Reason: o.result.Reason, Outcome: wake.AttemptAbandoned}
	if o.is == oversized {
		a.Reason = reasonTooLarge
	}
	var held bool
	var err error
	switch {
	case o.result.Delivered:
		a.Outcome = wake.AttemptDelivered
		held, err = r.tx.FinishDelivery(d)
	case o.result.Retry && d.Attempts <= len(retryAfter):
		a.Outcome, a.NextAt = wake.AttemptRetrying, r.nextAttempt(d.Attempts, o.result.RetryAfter)
		d.NextAt, d.Error = a.NextAt, o.result.Reason
		held, err = r.tx.RetryDelivery(d)
	default:
		held, err = r.tx.FinishDelivery(d)
	}
	if err != nil || !held {
		return err // another worker has it, and what it finds counts
	}
	return r.keep(o, a)
}

// drop removes a delivery that nobody is owed any more.
func (r *recorder) drop(o outcome) error {
	_, err := r.tx.FinishDelivery(o.delivery)
	return err
}

// nextAttempt is when a delivery is tried again after so many attempts.
func (r *recorder) nextAttempt(made int, asked time.Duration) time.Time {
	pause := retryAfter[made-1]
	pause += rand.N(pause/4 + 1)
	return r.at.Add(max(pause, min(asked, maxRetryAfter)))
}

// keep writes down an attempt that counts, and what follows from it.
func (r *recorder) keep(o outcome, a wake.Attempt) error {
	entry := trace.Entry{App: o.hook.App, Event: o.hook.Event, Subscription: a.Webhook, Path: "webhook", Count: a.Number, Detail: a.Reason}
	if a.Kind == wake.DeliveryOccurrence {
		entry.Occurrence = wake.OccurrenceID(r.epoch, a.Seq)
	}
	entry.Kind = map[string]trace.Kind{wake.AttemptDelivered: trace.Delivered, wake.AttemptRetrying: trace.Retrying, wake.AttemptAbandoned: trace.Abandoned}[a.Outcome]
	r.entries = append(r.entries, entry)
	if a.Kind == wake.DeliveryTerminated && a.Outcome != wake.AttemptRetrying {
		_, err := r.tx.DeleteWebhook(a.Webhook) // that was its last word
		return err
	}
	if err := r.tx.RecordAttempt(a); err != nil {
		return err
	}
	if o.is == oversized {
		return r.tellGap(a.Webhook)
	}
	return r.judge(a.Webhook, o.result)
}

// tellGap queues a notice that something a webhook was owed will not come.
func (r *recorder) tellGap(webhook string) error {
	through, err := r.tx.Watermark(webhook)
	if err != nil {
		return err
	}
	return r.tx.QueueDelivery(wake.Delivery{Webhook: webhook, Seq: through, Kind: wake.DeliveryGap, NextAt: r.at})
}

// judge counts an attempt for the health of its webhook.
func (r *recorder) judge(webhook string, result HookResult) error {
	h, ok := r.healths[webhook]
	if !ok {
		var err error
		if h, err = r.tx.Health(webhook); err != nil {
			return err
		}
	}
	if r.at.Sub(h.WindowAt) >= healthWindow {
		h.WindowAt, h.Attempts, h.Failures = r.at, 0, 0
	}
	h.Attempts++
	switch {
	case result.Delivered:
		h.LastDeliveryAt, h.LastError, h.FailedSince, h.ThrottledUntil = r.at, "", time.Time{}, time.Time{}
	default:
		h.Failures++
		h.LastError = result.Reason
		if h.FailedSince.IsZero() {
			h.FailedSince = r.at
		}
		if result.RetryAfter > 0 {
			h.ThrottledUntil = r.at.Add(min(result.RetryAfter, maxRetryAfter))
		}
	}
	r.healths[webhook] = h
	return nil
}

// keepHealths writes the healths that changed, and suspends webhooks whose endpoints fail.
func (r *recorder) keepHealths() error {
	for _, h := range r.healths {
		if err := r.tx.PutHealth(h); err != nil {
			return err
		}
		if !isFailing(h, r.at) {
			continue
		}
		w, err := r.tx.Webhook(h.Webhook)
		if errors.Is(err, store.ErrNotFound) || err == nil && (w.Suspended || !w.Live(r.at)) {
			continue
		}
		if err != nil {
			return err
		}
		w.Suspended, w.SuspendedAt = true, r.at
		if err := r.tx.PutWebhook(w); err != nil {
			return err
		}
		r.suspended = append(r.suspended, w)
	}
	return nil
}

// isFailing reports whether deliveries are to wait until the client has shown that it is there.
func isFailing(h wake.Health, at time.Time) bool {
	if h.Attempts >= manyAttempts && 100*h.Failures > failingPercent*h.Attempts {
		return true
	}
	return h.Attempts >= someAttempts && h.Failures == h.Attempts && !h.FailedSince.IsZero() && at.Sub(h.FailedSince) >= longFailing
}
