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
		if err := c.Sweep(ctx); err != nil && ctx.Err() == nil {
			c.log.Error("sweeping failed; it is tried again in a minute", "error", err)
		}
	}
}

// Sweep does one round: it ends subscriptions that have expired, telling their conversations, and removes what is older than
// the retention.
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
				what := s.Event
				if what == "" {
					what = "the topic " + s.Topic
				}
				if err := endAndTell(tx, []wake.Subscription{s}, harness.EndedText(what, "its time was over; subscribe again if it still matters")); err != nil {
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
	for ctx.Err() == nil {
		var more bool
		err := c.store.Update(ctx, func(tx store.Tx) (err error) {
			more, err = tx.Prune(now().Add(-c.retention), sweepStep)
			return err
		})
		if err != nil || !more {
			return err
		}
	}
	return ctx.Err()
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
