package core

import (
	"context"
	"errors"
	"slices"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A crowd is who takes an occurrence where its topics have more subscriptions than a transaction lists. They are counted before the
// occurrence is written, beside the database's writer, which serves others meanwhile; what is counted are subscriptions, not
// conversations, and some that end or are made in that moment may be counted or not. Who receives it does not depend on that.
type crowd struct {
	matched int
	picky   bool // the topics have subscriptions with a filter or once, so that another occurrence's may be another
	once    bool // some are fulfilled by it
}

// crowdAlike reports whether two occurrences have the same crowd if it is not picky.
func crowdAlike(a, b wake.Occurrence) bool {
	return slices.Equal(a.Topics, b.Topics) && a.Event == b.Event && a.To == b.To && a.Fleeting == b.Fleeting
}

// crowdPage is how many subscriptions of a crowd are looked at, or ended, at a time.
const crowdPage = 500

// appendToCrowds is appendAll where the topics of an occurrence have a crowd. There is one at a time: another one, to the same
// topics, would reach once subscriptions that this one has yet to end.
func (c *Core) appendToCrowds(ctx context.Context, list []wake.Occurrence, check func(r store.Reader, app string) error) ([]Emitted, []matches, error) {
	select {
	case c.crowds <- struct{}{}:
		defer func() { <-c.crowds }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	crowds := make([]*crowd, len(list))
	for i, o := range list {
		// Neighbours in a batch are often to the same subscribers.
		if i > 0 && crowds[i-1] != nil && !crowds[i-1].picky && crowdAlike(list[i-1], o) {
			crowds[i] = crowds[i-1]
			continue
		}
		var err error
		if crowds[i], err = c.crowdOf(ctx, o); err != nil {
			return nil, nil, err
		}
	}
	done, matched, err := c.tryAppend(ctx, list, crowds, check)
	if err != nil {
		return nil, nil, err
	}
	// The occurrences are written: what is left is done even if who asked is gone.
	ctx = context.WithoutCancel(ctx)
	for i, o := range list {
		if crowds[i] == nil || !crowds[i].once || done[i].Duplicate {
			continue
		}
		o.Seq, _ = wake.ParseOccurrenceID(c.epoch, done[i].ID)
		if err := c.endOnce(ctx, o); err != nil {
			return nil, nil, err
		}
	}
	return done, matched, nil
}

// fewTo reports whether the topics of an occurrence have no crowd.
func fewTo(r store.Reader, o wake.Occurrence) (bool, error) {
	_, err := r.SubscriptionsTo(o.App, o.Topics)
	if errors.Is(err, store.ErrMany) {
		return false, nil
	}
	return err == nil, err
}

// eachPicky calls f for page after page of a topic's subscriptions, with the id after which the page begins.
func eachPicky(f func(after string) ([]wake.Subscription, error)) error {
	after := ""
	for {
		page, err := f(after)
		if err != nil || len(page) < crowdPage {
			return err
		}
		after = page[len(page)-1].ID
	}
}

// crowdOf counts who takes an occurrence that is to be written; nil when its topics have no crowd.
func (c *Core) crowdOf(ctx context.Context, o wake.Occurrence) (*crowd, error) {
	var many crowd
	few := false
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		if few, err = fewTo(r, o); few || err != nil {
			return err
		}
		many.matched, err = r.CountTakers(o.App, o.Topics, o.Event, o.To, o.At)
		return err
	})
	switch {
	case err != nil || few:
		return nil, err
	case o.Fleeting:
		return nil, refusal.New(refusal.SubscriptionLimit,
			"more than %d subscriptions are to this event, the most that one which is deleted on delivery may have", store.MostListed)
	}
	for _, topic := range slices.Compact(slices.Sorted(slices.Values(o.Topics))) {
		err := eachPicky(func(after string) (page []wake.Subscription, err error) {
			err = c.store.View(ctx, func(r store.Reader) (err error) {
				page, err = r.PickySubscriptionsTo(o.App, topic, after, crowdPage)
				return err
			})
			many.picky = many.picky || len(page) > 0
			for _, s := range page {
				if s.Takes(o) {
					many.matched++
					many.once = many.once || s.Once
				}
			}
			return page, err
		})
		if err != nil {
			return nil, err
		}
	}
	return &many, nil
}

// endOnce ends the once subscriptions of a crowd that an occurrence in the log fulfils, page by page.
func (c *Core) endOnce(ctx context.Context, o wake.Occurrence) error {
	for _, topic := range slices.Compact(slices.Sorted(slices.Values(o.Topics))) {
		err := eachPicky(func(after string) (page []wake.Subscription, err error) {
			err = c.store.Update(ctx, func(tx store.Tx) error {
				if page, err = tx.PickySubscriptionsTo(o.App, topic, after, crowdPage); err != nil {
					return err
				}
				for _, s := range page {
					if !s.Once || !s.Takes(o) {
						continue
					}
					if _, err := tx.EndSubscription(s.ID, o.Seq, o.At); err != nil {
						return err
					}
				}
				return nil
			})
			return page, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
