package core

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// How many held messages ride on one result, and how much of each.
const (
	maxHeld     = 20
	maxHeldData = 400
	maxHeldText = 1000
)

// handLease is how long a call has to write its result, should its node not live to say that it failed to: then what was on it
// may ride on another's.
const handLease = 10 * time.Second

// held puts what waits for a conversation on its result. Of calls at once, one gets it.
func (c *Core) held(ctx context.Context, app wake.App, conversation wake.Conversation, setup harness.Setup, subscribed bool) (Addition, error) {
	var addition Addition
	if subscribed {
		addition.Text = harness.HeldText(setup)
	}
	messages, read, lease, err := c.hand(ctx, conversation)
	if err != nil || len(messages) == 0 {
		return addition, err
	}
	more := max(0, len(messages)-maxHeld)
	messages = messages[:len(messages)-more]
	lines := make([]harness.Message, len(messages))
	for i, m := range messages {
		lines[i] = harness.Message{ID: m.ID, Subject: oneLine(m.Text, maxHeldText), Data: oneLine(string(m.Data), maxHeldData)}
	}
	addition.Text = join(addition.Text, harness.HeldMessages(app.Name, lines, more))
	c.accountSent(conversation, messages, "held")
	addition.settle = func(ctx context.Context, arrived bool) error {
		receipt := Receipt{lease: lease}
		if !arrived {
			return c.writeReceipt(ctx, conversation, receipt)
		}
		receipt.Add(messages...)
		return c.settle(ctx, conversation, read.settled(receipt), "held")
	}
	return addition, nil
}

// hand reads what waits for a conversation and reserves it for this call, until the lease is over or a receipt ends it. It gives
// nothing when nothing waits, and while it is another's.
func (c *Core) hand(ctx context.Context, conversation wake.Conversation) (messages []Message, read *reading, lease time.Time, err error) {
	// Most calls find nothing, and write nothing.
	if messages, _, err = c.waiting(ctx, conversation); err != nil || len(messages) == 0 {
		return nil, nil, lease, err
	}
	at := now()
	lease = at.Add(handLease)
	var reserved bool
	err = c.store.Update(ctx, func(tx store.Tx) (err error) {
		reserved, err = tx.Hand(conversation.ID, at, lease)
		return err
	})
	if err != nil || !reserved {
		return nil, nil, lease, err
	}
	// Who had it before may have handed over what was read above.
	messages, read, err = c.waiting(ctx, conversation)
	if err != nil || len(messages) == 0 {
		return nil, nil, lease, errors.Join(err, c.writeReceipt(ctx, conversation, Receipt{lease: lease}))
	}
	return messages, read, lease, nil
}

// looksAtOnce bounds how often one call looks into the log for what waits: what lies further on comes with a later call.
const looksAtOnce = 20

// waiting reads what a conversation is owed and has not received, a little more than fits on one result.
func (c *Core) waiting(ctx context.Context, conversation wake.Conversation) (messages []Message, read *reading, err error) {
	read = &reading{core: c}
	for look := 0; look < looksAtOnce && err == nil && len(messages) == 0 && (look == 0 || read.behind); look++ {
		err = c.store.View(ctx, func(r store.Reader) error {
			current, err := r.Conversation(conversation.ID)
			if err != nil {
				return err
			}
			subs, err := r.SubscriptionsOf(conversation.ID)
			if err != nil {
				return err
			}
			read.conversation, read.cursor = current, max(read.cursor, current.Position)
			messages, err = read.read(r, subs, maxHeld*5)
			return err
		})
		if err == nil {
			err = read.passBy(ctx)
		}
	}
	return messages, read, err
}

// oneLine is a text on one line of at most limit characters: a held message must not look like several.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return s
}
