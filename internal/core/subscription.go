package core

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// The states of a subscription, as the app API names them.
const (
	StatusActive    = "active"
	StatusSuspended = "suspended" // a webhook whose endpoint fails
	StatusEnded     = "ended"     // it ended or expired
)

// A SubscriptionStatus is how one subscription stands, of a conversation or a webhook.
type SubscriptionStatus struct {
	ID        string
	Topic     string
	Status    string
	Via       string // how its subscriber is reached now; empty when it is not connected
	ExpiresAt time.Time
}

// Subscription reads how a subscription of the app stands.
func (c *Core) Subscription(ctx context.Context, app wake.App, id string) (SubscriptionStatus, error) {
	var s wake.Subscription
	var hook *wake.Webhook
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		s, hook, err = subscriptionByID(r, app, id)
		return err
	})
	if err != nil {
		return SubscriptionStatus{}, fault(err)
	}
	at := now()
	if hook != nil {
		return webhookStatus(*hook, at), nil
	}
	status := SubscriptionStatus{ID: s.ID, Topic: s.Topic, Status: StatusEnded, ExpiresAt: s.ExpiresAt}
	if s.Live(at) {
		paths, err := c.via(ctx, s.Conversation)
		if err != nil {
			return SubscriptionStatus{}, fault(err)
		}
		status.Status, status.Via = StatusActive, paths[s.Conversation]
	}
	return status, nil
}

func webhookStatus(w wake.Webhook, at time.Time) SubscriptionStatus {
	status := SubscriptionStatus{ID: w.ID, Topic: w.Topic, Status: StatusActive, Via: ViaWebhook, ExpiresAt: w.ExpiresAt}
	switch {
	case !w.Live(at):
		status.Status, status.Via = StatusEnded, ""
	case w.Suspended:
		status.Status, status.Via = StatusSuspended, ""
	}
	return status
}

// subscriptionByID finds a subscription of the app, or a webhook of it. Another app's id is refused as one that nobody has.
func subscriptionByID(r store.Reader, app wake.App, id string) (wake.Subscription, *wake.Webhook, error) {
	unknown := refusal.New(refusal.UnknownSubscription, "there is no subscription %s", wake.Quote(id))
	if !wake.CouldBeID(id) {
		return wake.Subscription{}, nil, unknown
	}
	s, err := r.Subscription(id)
	if err == nil && s.App == app.ID {
		return s, nil, nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return s, nil, err
	}
	w, err := r.Webhook(id)
	if err == nil && w.App == app.ID && w.EndedAt.IsZero() {
		return s, &w, nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return s, nil, err
	}
	return s, nil, unknown
}

// What became of a message that was sent to one subscription, as the app API names it.
const (
	SentDelivered = "delivered" // its conversation is connected, and gets it now
	SentQueued    = "queued"    // its conversation gets it when it connects or calls next
	SentClosed    = "closed"    // the subscription has ended; nothing was kept
)

// A Send is a message for one subscription.
type Send struct {
	Text string
	Data json.RawMessage // compact; nil for none
	ID   string          // the app's own id, which makes a repeated send to that subscription count once; may be empty
}

// Send writes an occurrence for one subscription's conversation, whatever the subscription's filter, and returns what became of
// it. A webhook takes its event and nothing else: unsupported.
func (c *Core) Send(ctx context.Context, app wake.App, id string, m Send) (string, error) {
	if m.Text == "" {
		return "", refusal.New(refusal.BadRequest, "event.text: must not be empty")
	}
	if err := checkOccurrence("event.text", m.Text, "event.id", m.ID, "event.data", m.Data); err != nil {
		return "", err
	}
	if err := c.allowBytes([]wake.Occurrence{{App: app.ID, Text: m.Text, Data: m.Data}}); err != nil {
		return "", err
	}
	var s wake.Subscription
	var closed bool
	err := c.store.Update(ctx, func(tx store.Tx) (err error) {
		var hook *wake.Webhook
		if s, hook, err = subscriptionByID(tx, app, id); err != nil {
			return err
		}
		at := now()
		if closed = hook == nil && !s.Live(at) || hook != nil && !hook.Live(at); closed {
			return nil
		}
		if hook != nil {
			return refusal.New(refusal.Unsupported, "this is a webhook's subscription, which takes its event only: emit %s", hook.Event)
		}
		return writeSend(tx, s, m, at)
	})
	switch {
	case err != nil:
		return "", fault(err)
	case closed:
		return SentClosed, nil
	}
	c.bus.Hint(bus.Key{App: app.ID, Topic: wake.ConversationTopic(s.Conversation)})
	// It was kept: when nobody knows who is connected, it is queued.
	if paths, err := c.via(ctx, s.Conversation); err != nil || paths[s.Conversation] == "" {
		return SentQueued, nil
	}
	return SentDelivered, nil
}

// writeSend appends a message to the topic of a subscription's conversation, unless it was sent before.
func writeSend(tx store.Tx, s wake.Subscription, m Send, at time.Time) error {
	o := wake.Occurrence{App: s.App, Kind: wake.KindEvent, Topics: []string{wake.ConversationTopic(s.Conversation)},
		Text: m.Text, Data: m.Data, Matched: 1, At: at}
	if m.ID != "" {
		o.Key = s.ID + "/" + m.ID // what is published by that id is another thing
	}
	_, err := tx.Append(o)
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}

// EndSubscription ends a subscription of the app and tells its conversation, or the endpoint of a webhook, which is unknown from then
// on. It reports whether it was live.
func (c *Core) EndSubscription(ctx context.Context, app wake.App, id string) (bool, error) {
	var ended []wake.Subscription
	var hooks []wake.Webhook
	err := c.store.Update(ctx, func(tx store.Tx) error {
		ended, hooks = nil, nil
		s, hook, err := subscriptionByID(tx, app, id)
		switch {
		case err != nil:
			return err
		case hook != nil:
			hooks, err = endByApp(tx, *hook)
			return err
		case !s.Live(now()):
			return nil // one that expired is ended by the sweep, which says so
		}
		ended = []wake.Subscription{s}
		return endAndTell(tx, ended, harness.EndedText(subscribedTo(s), "the app "+app.Name+" ended it"))
	})
	if err != nil {
		return false, fault(err)
	}
	c.announceEnds(ended)
	c.announceHookEnds(hooks...)
	return len(hooks)+len(ended) > 0, nil
}

// subscribedTo is what a subscription is to, in words.
func subscribedTo(s wake.Subscription) string {
	if s.Event != "" {
		return s.Event
	}
	return "the topic " + s.Topic
}
