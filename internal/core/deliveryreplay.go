package core

import (
	"context"
	"errors"
	"time"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// How much one replay queues, and looks at, before it says that there is more.
const (
	replayPage      = 500
	maxReplay       = 5000
	maxReplayLooked = 100 // pages
)

// A ReplayQuery says which occurrences an app's webhook is to be sent again. From and To are the first and the last place; without
// To it is the log's end. Since leaves out what happened earlier. One of From and Since is given.
type ReplayQuery struct {
	App      string
	Webhook  string
	From, To wake.Seq
	Since    time.Time
}

// ReplayedDeliveries is what became of a replay.
type ReplayedDeliveries struct {
	Queued    int      // of these the deliveries start anew, or go on where they are under way
	Gone      int      // content that was erased, or a single occurrence that is not kept any more
	Truncated bool     // the stretch begins before what is kept
	Suspended bool     // the webhook is: what is queued waits until its client subscribes again
	More      bool     // the stretch was not read to its end
	Through   wake.Seq // up to where it was
}

// ReplayDeliveries queues occurrences for a webhook again that it takes: those that were delivered, those that were given up, and
// those from before it was subscribed. It goes in steps, each a transaction; what an error leaves queued stays.
func (c *Core) ReplayDeliveries(ctx context.Context, q ReplayQuery) (ReplayedDeliveries, error) {
	if q.From < 1 && q.Since.IsZero() {
		return ReplayedDeliveries{}, refusal.New(refusal.BadRequest, "name the first occurrence, or a time")
	}
	if q.To != 0 && q.To < q.From {
		return ReplayedDeliveries{}, refusal.New(refusal.BadRequest, "the last occurrence comes before the first one")
	}
	within, done, err := c.replayed(ctx, q)
	for pages := 0; err == nil && done.More; pages++ {
		if pages == maxReplayLooked || done.Queued >= maxReplay {
			return done, nil
		}
		err = c.replayStep(ctx, q, within, &done)
		c.hintDeliveries()
	}
	return done, fault(err)
}

// replayed begins a replay: it gives the stretch that is to be read.
func (c *Core) replayed(ctx context.Context, q ReplayQuery) (within stretch, done ReplayedDeliveries, err error) {
	err = c.store.View(ctx, func(r store.Reader) error {
		if _, err := replayable(r, q.App, q.Webhook); err != nil {
			return err
		}
		log, err := r.Log()
		if err != nil {
			return err
		}
		within = stretch{max(q.From-1, 0), log.Head}
		if q.To != 0 {
			within.through = min(q.To, log.Head)
		}
		done = ReplayedDeliveries{Truncated: q.From > 0 && q.From <= log.Horizon}
		if !q.Since.IsZero() {
			before, err := r.PlaceBefore(q.Since)
			if err != nil {
				return err
			}
			within.after = max(within.after, before)
		}
		if q.From > 0 && q.From == q.To && q.From <= log.Head {
			if _, err := r.Occurrence(q.From); errors.Is(err, store.ErrNotFound) {
				done.Gone, done.Truncated = 1, false
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	done.Through, done.More = within.after, within.after < within.through
	return within, done, fault(err)
}

// replayable finds an app's webhook that deliveries can be queued for.
func replayable(r store.Reader, app, id string) (wake.Webhook, error) {
	hook, err := webhookOf(r, app, id)
	if errors.Is(err, store.ErrNotFound) {
		return hook, refusal.New(refusal.UnknownSubscription, "the app %s has no webhook %s: `rouse subscriptions --json` lists those it has",
			wake.Quote(app), wake.Quote(id))
	}
	if err == nil && !hook.Live(now()) {
		return hook, refusal.New(refusal.UnknownSubscription,
			"the webhook %s has ended: nothing is delivered to it until its client subscribes again", id)
	}
	return hook, err
}

// webhookOf finds an app's webhook, ended ones too.
func webhookOf(r store.Reader, app, id string) (wake.Webhook, error) {
	if !wake.CouldBeID(id) {
		return wake.Webhook{}, store.ErrNotFound
	}
	hook, err := r.Webhook(id)
	if err == nil && hook.App != app {
		return wake.Webhook{}, store.ErrNotFound
	}
	return hook, err
}

// replayStep queues one page of a replay.
func (c *Core) replayStep(ctx context.Context, q ReplayQuery, within stretch, done *ReplayedDeliveries) error {
	before := *done
	return c.store.Update(ctx, func(tx store.Tx) error {
		*done = before
		hook, err := replayable(tx, q.App, q.Webhook)
		if err != nil {
			return err
		}
		page, err := readLog(tx, hook.App, []string{hook.Topic}, stretch{done.Through, within.through}, replayPage, replays(hook))
		if err != nil {
			return err
		}
		at := now()
		for _, o := range page.occurrences {
			switch {
			case !q.Since.IsZero() && o.At.Before(q.Since):
				continue // places grow with times only as far as clocks go right
			case o.Kind == wake.KindErased:
				done.Gone++
				continue
			}
			if err := tx.RequeueDelivery(wake.Delivery{Webhook: hook.ID, Seq: o.Seq, NextAt: at}); err != nil {
				return err
			}
			done.Queued++
		}
		done.Through, done.More, done.Suspended = page.through, page.more, hook.Suspended
		return nil
	})
}

// replays is what a webhook takes, from before it was subscribed too, and what it may have taken before it was erased.
func replays(hook wake.Webhook) func(wake.Occurrence) bool {
	hook.From = 0
	unfiltered := hook
	unfiltered.Filter = nil
	return func(o wake.Occurrence) bool {
		if o.Kind == wake.KindErased {
			o.Kind = wake.KindEvent
			return unfiltered.Takes(o)
		}
		return hook.Takes(o)
	}
}
