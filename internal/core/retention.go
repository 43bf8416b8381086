package core

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

const (
	// retainStep is how many occurrences are removed in one transaction, and how many are in memory for that.
	retainStep = 200
	// sizeFloor is how old an occurrence must be to go for want of room: what is younger may be on its way still.
	sizeFloor = 10 * time.Minute
	// behindAtOnce bounds how many conversations are told, for each topic and step, that something was too old to be kept.
	behindAtOnce = 1000
)

// retain removes what is older than the retention, then the oldest occurrences while the database is larger than it may be.
func (c *Core) retain(ctx context.Context) error {
	before := now().Add(-c.retention)
	for more := true; more; {
		if err := c.tellBehind(ctx, before, retainStep); err != nil {
			return err
		}
		err := c.store.Update(ctx, func(tx store.Tx) (err error) {
			more, err = tx.Prune(before, retainStep)
			return err
		})
		if err != nil {
			return err
		}
	}
	return c.shrink(ctx, now().Add(-sizeFloor))
}

// shrink removes the oldest occurrences, as far as they are from before the time, when the database is larger than it may be:
// as large a part of the log as the size is over. The next sweep looks again.
func (c *Core) shrink(ctx context.Context, before time.Time) error {
	if c.retentionSize == 0 {
		return nil
	}
	size, err := c.store.Size(ctx)
	if err != nil || size <= c.retentionSize {
		return err
	}
	var log store.Log
	if err := c.store.View(ctx, func(r store.Reader) (err error) {
		log, err = r.Log()
		return err
	}); err != nil {
		return err
	}
	over := float64(size-c.retentionSize) / float64(size)
	left := int(float64(log.Head-log.Horizon)*over) + 1
	for step := retainStep; left > 0 && step == retainStep; {
		limit := min(left, retainStep)
		if err := c.tellBehind(ctx, before, limit); err != nil {
			return err
		}
		err := c.store.Update(ctx, func(tx store.Tx) (err error) {
			step, err = tx.PruneLog(before, limit)
			return err
		})
		if err != nil {
			return err
		}
		left -= step
	}
	return nil
}

// tellBehind tells the conversations that were owed one of the oldest occurrences, and have not come for it, that it is too old
// to be kept. The oldest are at most limit, from before the time.
func (c *Core) tellBehind(ctx context.Context, before time.Time, limit int) error {
	behind := map[string]string{} // apps by the ids of their conversations
	err := c.store.View(ctx, func(r store.Reader) error {
		oldest, err := r.OldestOccurrences(before, limit)
		if err != nil {
			return err
		}
		return findBehind(r, oldest, behind)
	})
	if err != nil || len(behind) == 0 {
		return err
	}
	for conversations := range slices.Chunk(slices.Sorted(maps.Keys(behind)), retainStep) {
		if err := c.tellMissed(ctx, conversations, behind); err != nil {
			return err
		}
	}
	return nil
}

// findBehind collects the conversations that are owed one of the occurrences and have not reached it. What is on one topic is
// looked at once, by its last place: there are as many reads as topics.
func findBehind(r store.Reader, oldest []wake.Occurrence, behind map[string]string) error {
	type topic struct{ app, name string }
	on := map[topic][]wake.Occurrence{}
	for _, o := range oldest {
		if o.Kind != wake.KindEvent {
			continue
		}
		for _, name := range o.Topics {
			on[topic{o.App, name}] = append(on[topic{o.App, name}], o)
		}
	}
	for t, occurrences := range on {
		subs, err := r.SubscriptionsBehind(t.app, t.name, occurrences[len(occurrences)-1].Seq, behindAtOnce)
		if err != nil {
			return err
		}
		for _, s := range subs {
			if _, known := behind[s.Conversation]; known {
				continue
			}
			conversation, err := r.Conversation(s.Conversation)
			if err != nil {
				return err
			}
			for _, o := range occurrences {
				if o.Seq > conversation.Position && s.Takes(o) {
					behind[s.Conversation] = t.app
					break
				}
			}
		}
	}
	return nil
}

// MissedEvent is the event name of the notice that something was too old to be kept.
const MissedEvent = wake.ReservedEventPrefix + "missed"

// tellMissed writes the notice to each conversation's own topic, once a day at most.
func (c *Core) tellMissed(ctx context.Context, conversations []string, app map[string]string) error {
	at := now()
	err := c.store.Update(ctx, func(tx store.Tx) error {
		for _, id := range conversations {
			_, err := tx.Append(wake.Occurrence{App: app[id], Kind: wake.KindMissed, Event: MissedEvent, Text: harness.MissedText(),
				Topics: []string{wake.ConversationTopic(id)}, Key: id + "/" + at.Format(time.DateOnly), Matched: 1, At: at})
			// It was told today, or its app was deleted meanwhile.
			if err != nil && !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range conversations {
		c.bus.Hint(bus.Key{App: app[id], Topic: wake.ConversationTopic(id)})
	}
	return nil
}
