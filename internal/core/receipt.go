package core

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A Receipt says how far a conversation has received what it is owed: up to a place in the log, and up to one in each replay.
// The zero Receipt says nothing. Not safe for concurrent use.
type Receipt struct {
	log     wake.Seq
	replays map[string]wake.Seq // by subscription
	lease   time.Time           // of a reservation that ends with it; zero when there is none
}

// Add adds that these messages were received, and with each all that was read before it.
func (p *Receipt) Add(messages ...Message) {
	for _, m := range messages {
		if m.Replay == "" {
			p.log = max(p.log, m.Seq)
			continue
		}
		p.addReplay(m.Replay, m.Seq)
	}
}

func (p *Receipt) addReplay(subscription string, through wake.Seq) {
	if p.replays == nil {
		p.replays = map[string]wake.Seq{}
	}
	p.replays[subscription] = max(p.replays[subscription], through)
}

// AddAll adds what another receipt says.
func (p *Receipt) AddAll(other Receipt) {
	p.log = max(p.log, other.log)
	for subscription, through := range other.replays {
		p.addReplay(subscription, through)
	}
}

// Empty reports whether it says nothing.
func (p *Receipt) Empty() bool { return p.log == 0 && len(p.replays) == 0 }

// settle records durably what a conversation has received.
func (c *Core) settle(ctx context.Context, conversation wake.Conversation, receipt Receipt, path string) error {
	if err := c.writeReceipt(ctx, conversation, receipt); err != nil {
		return err
	}
	c.hintScrub()
	entry := trace.Entry{Kind: trace.Delivered, App: conversation.App, Conversation: conversation.ID, Path: path, Detail: "and all before it"}
	if receipt.log != 0 {
		entry.Occurrence = wake.OccurrenceID(c.epoch, receipt.log)
		c.feed.Put(entry)
	}
	for _, subscription := range slices.Sorted(maps.Keys(receipt.replays)) {
		entry.Subscription, entry.Occurrence = subscription, wake.OccurrenceID(c.epoch, receipt.replays[subscription])
		c.feed.Put(entry)
	}
	return nil
}

// writeReceipt moves the conversation's position and those of its replays, and ends the reservation of what waited for it. What
// was forgotten meanwhile has none.
func (c *Core) writeReceipt(ctx context.Context, conversation wake.Conversation, receipt Receipt) error {
	return c.store.Update(ctx, func(tx store.Tx) error {
		if !receipt.lease.IsZero() {
			if err := tx.Handed(conversation.ID, receipt.lease); err != nil {
				return err
			}
		}
		for subscription, through := range receipt.replays {
			if err := tx.AdvanceReplay(subscription, through); err != nil {
				return err
			}
		}
		if receipt.log == 0 {
			return nil
		}
		return tx.Advance(conversation.ID, receipt.log)
	})
}
