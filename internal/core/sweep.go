package core

import (
	"context"
	"time"

	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// How often the sweep runs, and how much it removes in one transaction.
const (
	sweepEvery = time.Minute
	sweepStep  = 500
)

// sweep ends what has expired and removes what is older than the retention, until ctx ends.
func (c *Core) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// Two that sweep at once do no harm, but it is enough for one.
		if !c.turn(ctx, "sweep", sweepEvery-sweepEvery/10) {
			continue
		}
		if err := c.Sweep(ctx); err != nil && ctx.Err() == nil {
			c.log.Error("sweeping failed; it is tried again in a minute", "error", err)
		}
	}
}

// Sweep does one round: it ends subscriptions that have expired, telling their conversations, goes on with forgetting users
// where a crash interrupted it, bounds what waits for webhooks, and removes what is older or more than is to be kept.
func (c *Core) Sweep(ctx context.Context) error {
	for {
		var expired []wake.Subscription
		if idle, err := c.nothingExpired(ctx); idle || err != nil {
			if err != nil {
				return err
			}
			break
		}
		err := c.store.Update(ctx, func(tx store.Tx) (err error) {
			if expired, err = tx.ExpiredSubscriptions(now(), sweepStep); err != nil {
				return err
			}
			for _, s := range expired {
				if err := endAndTell(tx, []wake.Subscription{s}, harness.EndedText(subscribedTo(s), "its time was over; subscribe again if it still matters")); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		c.announceEnds(expired)
		if len(expired) < sweepStep {
			break
		}
	}
	if err := c.finishForgetting(ctx); err != nil {
		return err
	}
	if err := c.sweepWebhooks(ctx); err != nil {
		return err
	}
	c.hintScrub()
	return c.retain(ctx)
}

// nothingExpired spares the database a write transaction each minute.
func (c *Core) nothingExpired(ctx context.Context) (idle bool, err error) {
	err = c.store.View(ctx, func(r store.Reader) error {
		expired, err := r.ExpiredSubscriptions(now(), 1)
		idle = len(expired) == 0
		return err
	})
	return idle, err
}
