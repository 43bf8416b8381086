package core

import (
	"context"
	"math"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A reading goes through what a conversation is owed: first what its replays bring, then the log. It belongs to one goroutine.
type reading struct {
	core         *Core
	conversation wake.Conversation
	cursor       wake.Seq             // everything in the log up to here was read
	replays      map[string]*replayed // those not finished, by subscription
	behind       bool                 // the last read stopped before the end
}

// replayed is how far a replay was read.
type replayed struct {
	cursor  wake.Seq // everything up to here was looked at
	last    wake.Seq // the last place that was given out
	settled wake.Seq // received up to here
	kept    wake.Seq // what of that is in the store
}

// read reads the next messages from a snapshot, at most limit.
func (g *reading) read(r store.Reader, subs []wake.Subscription, limit int) ([]Message, error) {
	g.behind = false
	messages, err := g.readReplays(r, limit)
	if err != nil {
		return nil, err
	}
	if g.behind || len(messages) == limit {
		g.behind = true
		return messages, nil
	}
	page, err := readOwed(r, g.conversation, subs, stretch{g.cursor, math.MaxInt64}, limit-len(messages))
	if err != nil {
		return nil, err
	}
	g.cursor, g.behind = page.through, page.more
	return append(messages, g.core.messages(page.occurrences, "")...), nil
}

// readReplays reads what replays bring, until all were read or it is enough: then it is behind.
func (g *reading) readReplays(r store.Reader, limit int) (messages []Message, err error) {
	if unread, err := g.unread(r); err != nil || !unread {
		return nil, err
	}
	p, err := newReplayer(r, g.conversation)
	if err != nil {
		return nil, err
	}
	err = p.each(func(replay wake.Replay, read func(stretch, int) (owed, error)) error {
		state := g.replays[replay.Subscription]
		if state == nil || state.cursor >= replay.Until || g.behind {
			return nil
		}
		if len(messages) == limit {
			g.behind = true
			return nil
		}
		page, err := read(stretch{state.cursor, replay.Until}, limit-len(messages))
		if err != nil {
			return err
		}
		state.cursor, g.behind = page.through, page.more
		if n := len(page.occurrences); n > 0 {
			state.last = page.occurrences[n-1].Seq
		}
		messages = append(messages, g.core.messages(page.occurrences, replay.Subscription)...)
		return nil
	})
	return messages, err
}

// unread looks which replays are not finished, and reports whether one of them was not read to its end.
func (g *reading) unread(r store.Reader) (unread bool, err error) {
	list, err := r.ReplaysOf(g.conversation.ID)
	if err != nil {
		return false, err
	}
	current := make(map[string]*replayed, len(list))
	for _, replay := range list {
		state := g.replays[replay.Subscription]
		if state == nil {
			state = &replayed{cursor: replay.After, last: replay.After, settled: replay.After, kept: replay.After}
		}
		current[replay.Subscription] = state
		unread = unread || state.cursor < replay.Until
	}
	g.replays = current
	return unread, nil
}

// settled completes a receipt: whoever received the last message that was read of a replay has received what was looked at
// after it, too.
func (g *reading) settled(receipt Receipt) Receipt {
	full := Receipt{log: receipt.log, lease: receipt.lease}
	for subscription, through := range receipt.replays {
		if state := g.replays[subscription]; state != nil {
			state.settled = max(state.settled, through)
			if state.settled >= state.last {
				through = state.cursor
			}
			state.kept = max(state.kept, through)
		}
		full.addReplay(subscription, through)
	}
	return full
}

// passBy records how far replays were looked at where nothing was found, so that the next reading need not look again.
func (g *reading) passBy(ctx context.Context) error {
	var receipt Receipt
	for subscription, state := range g.replays {
		if state.settled >= state.last && state.cursor > state.kept {
			receipt.addReplay(subscription, state.cursor)
			state.kept = state.cursor
		}
	}
	if receipt.Empty() {
		return nil
	}
	return g.core.writeReceipt(ctx, g.conversation, receipt)
}
