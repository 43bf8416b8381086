package core

import (
	"context"
	"errors"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// What the sweep does about webhooks.
const (
	maxHookQueue     = 10_000             // occurrences that wait for one webhook; of more, the oldest go
	maxSuspended     = 7 * 24 * time.Hour // after which one without end, that nobody refreshed, ends
	suspendedEvery   = time.Hour          // how often those are looked for: it reads all webhooks
	trimmedAtOnce    = 100                // webhooks, in one round
	longestTrimRound = 10                 // rounds, in one sweep
)

// sweepWebhooks bounds the queues of webhooks, and ends those that were suspended for too long.
func (c *Core) sweepWebhooks(ctx context.Context) error {
	if c.webhooks == nil {
		return nil
	}
	if err := c.trimQueues(ctx); err != nil {
		return err
	}
	last, at := c.lookedFor.Load(), time.Now()
	if at.Sub(time.Unix(0, last)) < suspendedEvery || !c.lookedFor.CompareAndSwap(last, at.UnixNano()) {
		return nil
	}
	return c.endSuspended(ctx)
}

func (c *Core) trimQueues(ctx context.Context) error {
	for range longestTrimRound {
		var over []string
		err := c.store.View(ctx, func(r store.Reader) (err error) {
			over, err = r.Overfull(maxHookQueue, trimmedAtOnce)
			return err
		})
		if err != nil || len(over) == 0 {
			return err
		}
		for _, id := range over {
			err := c.store.Update(ctx, func(tx store.Tx) error {
				_, err := tx.TrimDeliveries(id, maxHookQueue)
				return err
			})
			if err != nil {
				return err
			}
		}
		c.hintDeliveries()
		c.hintScrub()
	}
	return nil
}

// endSuspended ends webhooks without end that have been suspended for too long: nobody else would.
func (c *Core) endSuspended(ctx context.Context) error {
	var apps []wake.App
	if err := c.store.View(ctx, func(r store.Reader) (err error) {
		apps, err = r.Apps()
		return err
	}); err != nil {
		return err
	}
	before := now().Add(-maxSuspended)
	for _, app := range apps {
		var hooks []wake.Webhook
		err := c.store.View(ctx, func(r store.Reader) (err error) {
			hooks, err = r.WebhooksOfApp(app.ID)
			return err
		})
		if err != nil {
			return err
		}
		for _, w := range hooks {
			if !suspendedTooLong(w, before) {
				continue
			}
			if err := c.endFailing(ctx, w.ID, before); err != nil {
				return err
			}
		}
	}
	return nil
}

func suspendedTooLong(w wake.Webhook, before time.Time) bool {
	return w.Suspended && w.ExpiresAt.IsZero() && w.EndedAt.IsZero() && w.SuspendedAt.Before(before)
}

// endFailing ends a webhook, unless it was refreshed meanwhile.
func (c *Core) endFailing(ctx context.Context, id string, before time.Time) error {
	var ended bool
	var w wake.Webhook
	err := c.store.Update(ctx, func(tx store.Tx) (err error) {
		ended = false
		if w, err = tx.Webhook(id); errors.Is(err, store.ErrNotFound) || err == nil && !suspendedTooLong(w, before) {
			return nil
		}
		if err != nil {
			return err
		}
		health, err := tx.Health(id)
		if err != nil {
			return err
		}
		ended, err = tx.EndWebhook(id, endedFailing+"/"+health.LastError, now())
		return err
	})
	if err == nil && ended {
		c.announceHookEnds(w)
	}
	return err
}
