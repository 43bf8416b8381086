package core

import (
	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// endAndTell ends live subscriptions and writes why to each of their conversations' own topics.
func endAndTell(tx store.Tx, subs []wake.Subscription, text string) error {
	if len(subs) == 0 {
		return nil
	}
	log, err := tx.Log()
	if err != nil {
		return err
	}
	for _, s := range subs {
		ended, err := tx.EndSubscription(s.ID, log.Head, now())
		if err != nil {
			return err
		}
		if !ended {
			continue
		}
		if _, err := tx.Append(wake.Occurrence{App: s.App, Kind: wake.KindEnded, Event: s.Event,
			Topics: []string{wake.ConversationTopic(s.Conversation)}, Text: text, Matched: 1, At: now()}); err != nil {
			return err
		}
	}
	return nil
}

// end ends live subscriptions without a word: whoever asked for it knows. It returns those that it ended.
func end(tx store.Tx, subs []wake.Subscription) (ended []wake.Subscription, err error) {
	log, err := tx.Log()
	if err != nil {
		return nil, err
	}
	for _, s := range subs {
		was, err := tx.EndSubscription(s.ID, log.Head, now())
		if err != nil {
			return nil, err
		}
		if was {
			ended = append(ended, s)
		}
	}
	return ended, nil
}

// announceEnds makes the conversations of ended subscriptions look again, after the transaction that ended them.
func (c *Core) announceEnds(ended []wake.Subscription) {
	c.hintScrub()
	for _, s := range ended {
		c.bus.Hint(bus.Key{App: s.App, Topic: wake.ConversationTopic(s.Conversation)})
		c.feed.Put(trace.Entry{Kind: trace.Ended, App: s.App, Event: s.Event, Topic: s.Topic, Conversation: s.Conversation, Subscription: s.ID})
	}
}
