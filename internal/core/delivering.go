package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// How webhook deliveries are made.
const (
	deliveryWorkers = 32
	perWebhook      = 4                // deliveries of one webhook under way at once, on all nodes together
	deliveryLease   = 20 * time.Second // twice an attempt; after which a claimed delivery that nobody finished is due again
	deliveryPoll    = 5 * time.Second  // how often the queue is looked at without a hint: another node may have filled it and died
)

// retryAfter are the pauses after each failed attempt; after the last one the delivery is abandoned.
var retryAfter = []time.Duration{2 * time.Second, 10 * time.Second, time.Minute, 5 * time.Minute}

func (c *Core) hintDeliveries() {
	select {
	case c.deliveries <- struct{}{}:
	default:
	}
}

// deliver makes the queued webhook deliveries as they fall due, until ctx ends. Attempts under way are finished.
func (c *Core) deliver(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	free := make(chan struct{}, deliveryWorkers)
	for {
		claimed, err := c.claim(ctx, deliveryWorkers-len(free))
		if err != nil && ctx.Err() == nil {
			c.log.Error("reading the webhook queue failed; it is tried again", "error", err)
		}
		for _, d := range claimed {
			free <- struct{}{}
			running.Go(func() {
				defer func() { <-free; c.hintDeliveries() }()
				c.attempt(ctx, d)
			})
		}
		if len(claimed) > 0 {
			continue
		}
		if !c.awaitDeliveries(ctx, len(free) == deliveryWorkers) {
			return
		}
	}
}

func (c *Core) claim(ctx context.Context, limit int) (claimed []wake.Delivery, err error) {
	if limit <= 0 || ctx.Err() != nil {
		return nil, nil
	}
	due, err := c.nextDelivery(ctx)
	if err != nil || due.IsZero() || due.After(now()) {
		return nil, err
	}
	err = c.store.Update(ctx, func(tx store.Tx) (err error) {
		claimed, err = tx.ClaimDeliveries(store.ClaimQuery{Now: now(), Lease: now().Add(deliveryLease), Limit: limit, PerWebhook: perWebhook})
		return err
	})
	return claimed, err
}

func (c *Core) nextDelivery(ctx context.Context) (due time.Time, err error) {
	err = c.store.View(ctx, func(r store.Reader) (err error) {
		due, err = r.NextDelivery(nil)
		return err
	})
	return due, err
}

// awaitDeliveries waits until there may be something to deliver. It returns false when ctx ends.
func (c *Core) awaitDeliveries(ctx context.Context, busy bool) bool {
	wait := deliveryPoll
	if due, err := c.nextDelivery(ctx); err == nil && !due.IsZero() && !busy {
		// Claims by others may not be due before their lease: a little patience keeps this from spinning.
		wait = min(wait, max(time.Until(due), 50*time.Millisecond))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-c.deliveries:
	case <-timer.C:
	}
	return true
}

// attempt makes one attempt at a delivery and records how it went.
func (c *Core) attempt(ctx context.Context, d wake.Delivery) {
	var hook wake.Webhook
	var o wake.Occurrence
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		if hook, err = r.Webhook(d.Webhook); err != nil {
			return err
		}
		o, err = r.Occurrence(d.Seq)
		return err
	})
	if d.Kind != wake.DeliveryOccurrence || errors.Is(err, store.ErrNotFound) || err == nil && (!hook.Live(now()) || o.Kind == wake.KindErased) {
		err = c.store.Update(ctx, func(tx store.Tx) error {
			_, err := tx.FinishDelivery(d)
			return err
		})
	} else if err == nil {
		err = c.send(ctx, d, hook, o)
	}
	if err != nil && ctx.Err() == nil {
		c.log.Error("a webhook delivery could not be recorded; it is made again", "subscription", d.Webhook, "error", err)
	}
}

func (c *Core) send(ctx context.Context, d wake.Delivery, hook wake.Webhook, o wake.Occurrence) error {
	body, err := c.deliveryBody(o)
	if err != nil {
		return err
	}
	target, err := c.target(hook)
	if err != nil {
		return err
	}
	id := o.EventID(c.epoch)
	if d, _ := DialectNamed(hook.Dialect); d.MessageID {
		id = messageID(hook.ID, o.Seq)
	}
	result := c.webhooks.Deliver(ctx, target, id, body)
	if !result.Delivered && ctx.Err() != nil {
		return nil // the core is stopping: this was no fair attempt, and its claim lapses
	}
	return c.record(context.WithoutCancel(ctx), d, o, result)
}

// messageID is the webhook-id of an occurrence for one webhook: the same each time it is tried.
func messageID(webhook string, seq wake.Seq) string {
	sum := sha256.Sum256([]byte(webhook + "/" + strconv.FormatInt(int64(seq), 10)))
	return "msg_" + hex.EncodeToString(sum[:16])
}

func (c *Core) target(hook wake.Webhook) (HookTarget, error) {
	secret, err := c.master.Unseal(secretPurpose, hook.ID, hook.Secret)
	if err != nil {
		return HookTarget{}, err
	}
	target := HookTarget{URL: hook.URL, Subscription: hook.ID, Secrets: []string{string(secret)}}
	if now().Before(hook.FormerUntil) {
		former, err := c.master.Unseal(formerPurpose, hook.ID, hook.Former)
		if err != nil {
			return HookTarget{}, err
		}
		target.Secrets = append(target.Secrets, string(former))
	}
	return target, nil
}

// record keeps how an attempt went: finished, to be tried again, or abandoned.
func (c *Core) record(ctx context.Context, d wake.Delivery, o wake.Occurrence, result HookResult) error {
	d.Attempts++
	entry := trace.Entry{App: o.App, Event: o.Event, Occurrence: o.ID(c.epoch), Subscription: d.Webhook, Path: "webhook",
		Count: d.Attempts, Detail: result.Reason}
	retry := result.Retry && d.Attempts <= len(retryAfter)
	switch {
	case result.Delivered:
		entry.Kind = trace.Delivered
	case retry:
		entry.Kind = trace.Retrying
		pause := retryAfter[d.Attempts-1]
		pause += time.Duration(rand.Int64N(int64(pause)/4 + 1))
		d.NextAt, d.Error = now().Add(max(pause, min(result.RetryAfter, time.Hour))), result.Reason
	default:
		entry.Kind = trace.Abandoned
	}
	held := false
	err := c.store.Update(ctx, func(tx store.Tx) (err error) {
		if retry && !result.Delivered {
			held, err = tx.RetryDelivery(d)
		} else {
			held, err = tx.FinishDelivery(d)
		}
		if err != nil || !held {
			return err // another worker has it, and what it finds counts
		}
		return recordHook(tx, d.Webhook, result)
	})
	if err == nil && held {
		c.feed.Put(entry)
	}
	return err
}

// recordHook keeps how the webhook's last attempt went, for the status its client is given.
func recordHook(tx store.Tx, id string, result HookResult) error {
	h, err := tx.Health(id)
	if err != nil {
		return err
	}
	if result.Delivered {
		h.LastDeliveryAt, h.LastError, h.FailedSince = now(), "", time.Time{}
	} else {
		h.LastError = result.Reason
		if h.FailedSince.IsZero() {
			h.FailedSince = now()
		}
	}
	return tx.PutHealth(h)
}
