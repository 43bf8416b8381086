package core

import (
	"context"
	"errors"
	"time"

	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// append writes an occurrence, decides who receives it, and queues what must be queued, in one transaction. check, if not
// nil, is asked first within it.
func (c *Core) append(ctx context.Context, o wake.Occurrence, check func(r store.Reader, app string) error) (Emitted, error) {
	done, err := c.appendAll(ctx, []wake.Occurrence{o}, check)
	if err != nil {
		return Emitted{}, err
	}
	return done[0], nil
}

// appendAll is append for occurrences of one app, at least one: all of them in one transaction, in order.
func (c *Core) appendAll(ctx context.Context, list []wake.Occurrence, check func(r store.Reader, app string) error) ([]Emitted, error) {
	if err := c.allowBytes(list); err != nil {
		return nil, err
	}
	done, matched, err := c.tryAppend(ctx, list, nil, check)
	for errors.Is(err, store.ErrMany) {
		done, matched, err = c.appendToCrowds(ctx, list, check)
	}
	if err != nil {
		return nil, fault(err)
	}
	c.announce(list, done, matched)
	return done, nil
}

// tryAppend does what is appendAll's in the database. crowds are those of the occurrences, nil when none has one; it returns
// [store.ErrMany], and has done nothing, when one is missing.
func (c *Core) tryAppend(ctx context.Context, list []wake.Occurrence, crowds []*crowd, check func(r store.Reader, app string) error) ([]Emitted, []matches, error) {
	done, matched := make([]Emitted, len(list)), make([]matches, len(list))
	err := c.store.Update(store.WithTopics(ctx, list[0].App, topicsIn(list)), func(tx store.Tx) error {
		if check != nil {
			if err := check(tx, list[0].App); err != nil {
				return err
			}
		}
		for i, o := range list {
			var many *crowd
			if crowds != nil {
				many = crowds[i]
			}
			var err error
			if done[i], matched[i], err = c.write(tx, o, many); err != nil {
				return err
			}
		}
		return nil
	})
	return done, matched, err
}

// topicsIn are the topics of all of them, some perhaps more than once.
func topicsIn(list []wake.Occurrence) []string {
	if len(list) == 1 {
		return list[0].Topics
	}
	var topics []string
	for _, o := range list {
		topics = append(topics, o.Topics...)
	}
	return topics
}

// write does the part of append that is the transaction's.
func (c *Core) write(tx store.Tx, o wake.Occurrence, many *crowd) (Emitted, matches, error) {
	var matched matches
	if err := matched.find(tx, o, many); err != nil {
		return Emitted{}, matches{}, err
	}
	o.Matched = matched.count()
	seq, err := tx.Append(written(o))
	if errors.Is(err, store.ErrExists) {
		earlier, err := tx.OccurrenceOf(o.App, o.Event, o.Key)
		return Emitted{ID: earlier.ID(c.epoch), Matched: earlier.Matched, Duplicate: true}, matches{}, err
	}
	if err != nil {
		return Emitted{}, matches{}, err
	}
	if err = matched.write(tx, seq, o.At); err == nil && o.Fleeting {
		err = tx.Owe(seq, matched.subscriptions, matched.webhooks)
	}
	return Emitted{ID: wake.OccurrenceID(c.epoch, seq), Matched: o.Matched}, matched, err
}

// announce tells of what was written: who waits for it, and whoever follows the feed.
func (c *Core) announce(list []wake.Occurrence, done []Emitted, matched []matches) {
	keys := make([]bus.Key, 0, len(list))
	webhooks := false
	for i, o := range list {
		c.account(o, done[i], matched[i])
		if done[i].Duplicate {
			continue
		}
		// Neighbours in a batch often go to the same topic.
		for _, key := range keysOf(o.App, o.Topics) {
			if len(keys) == 0 || keys[len(keys)-1] != key {
				keys = append(keys, key)
			}
		}
		webhooks = webhooks || len(matched[i].webhooks) > 0
	}
	if len(keys) > 0 {
		c.bus.Hint(keys...)
	}
	if webhooks {
		c.hintDeliveries()
	}
}

// matches are the subscribers that receive an occurrence.
type matches struct {
	counted       int // of a crowd
	conversations map[string]struct{}
	subscriptions []wake.Subscription // of a fleeting occurrence only
	once          []wake.Subscription // fulfilled by it
	webhooks      []wake.Webhook
}

// find asks each subscriber of the occurrence's topics whether it takes it, unless they are a crowd that was counted.
func (m *matches) find(r store.Reader, o wake.Occurrence, many *crowd) error {
	var subs []wake.Subscription
	if many != nil {
		m.counted = many.matched
	} else {
		var err error
		if subs, err = r.SubscriptionsTo(o.App, o.Topics); err != nil {
			return err
		}
	}
	for _, s := range subs {
		if !s.Takes(o) {
			continue
		}
		if m.conversations == nil {
			m.conversations = map[string]struct{}{}
		}
		m.conversations[s.Conversation] = struct{}{}
		if o.Fleeting {
			m.subscriptions = append(m.subscriptions, s)
		}
		if s.Once {
			m.once = append(m.once, s)
		}
	}
	hooks, err := r.WebhooksTo(o.App, o.Topics)
	if err != nil {
		return err
	}
	for _, w := range hooks {
		if w.Takes(o) {
			m.webhooks = append(m.webhooks, w)
		}
	}
	return nil
}

func (m *matches) count() int { return m.counted + len(m.conversations) + len(m.webhooks) }

// write ends what the occurrence at that place fulfils and queues what it must.
func (m *matches) write(tx store.Tx, seq wake.Seq, at time.Time) error {
	for _, s := range m.once {
		if _, err := tx.EndSubscription(s.ID, seq, at); err != nil {
			return err
		}
	}
	for _, w := range m.webhooks {
		if err := tx.QueueDelivery(wake.Delivery{Webhook: w.ID, Seq: seq, NextAt: at}); err != nil {
			return err
		}
	}
	return nil
}

// tracedMatches bounds how many of an occurrence's conversations are told of one by one.
const tracedMatches = 20

func (c *Core) account(o wake.Occurrence, done Emitted, matched matches) {
	if !c.feed.Followed() {
		return
	}
	entry := trace.Entry{Kind: trace.Emitted, App: o.App, Event: o.Event, Topic: o.Topics[0], Occurrence: done.ID, Count: done.Matched}
	if done.Duplicate {
		entry.Kind = trace.Duplicate
	}
	c.feed.Put(entry)
	told := 0
	for conversation := range matched.conversations {
		if told++; told > tracedMatches {
			break
		}
		path := "nothing of it is connected"
		if c.nodes != nil {
			path = "nothing of it is connected to this node" // others are not asked for the sake of an account
		}
		if via := c.presence.here(conversation); via != "" {
			path = "connected"
		}
		c.feed.Put(trace.Entry{Kind: trace.Matched, App: o.App, Event: o.Event, Occurrence: done.ID, Conversation: conversation, Detail: path})
	}
}

func keysOf(app string, topics []string) []bus.Key {
	keys := make([]bus.Key, len(topics))
	for i, topic := range topics {
		keys[i] = bus.Key{App: app, Topic: topic}
	}
	return keys
}
