package core

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// subscriptionTTL is how long a subscription lives when nothing is said.
const subscriptionTTL = 30 * 24 * time.Hour

// A Subscribed is what a subscribing call is answered with.
type Subscribed struct {
	Subscription wake.Subscription
	Created      bool // false when it was there and was renewed
	Session      string
	Addition     Addition
	Agent        harness.Agent
}

// SubscribeEvent subscribes the conversation a call comes from to one of the app's events. It is durable when this returns.
func (c *Core) SubscribeEvent(ctx context.Context, app wake.App, call wake.Call, name string, arguments json.RawMessage, once bool) (Subscribed, error) {
	var done Subscribed
	err := c.withManifest(ctx, app.ID, func(m manifest) error {
		event, err := m.event(name)
		if err != nil {
			return err
		}
		want, err := toEvent(app, call, event, arguments, once)
		if err != nil {
			return err
		}
		done, err = c.subscribe(ctx, app, call, want, m.current, nil)
		return err
	})
	return done, err
}

// toEvent is what to keep of a subscription that a call makes to an event.
func toEvent(app wake.App, call wake.Call, event *wake.Event, arguments json.RawMessage, once bool) (wake.Subscription, error) {
	bound, err := event.Bind(arguments)
	if err != nil {
		return wake.Subscription{}, err
	}
	if event.Personal && call.User == "" {
		return wake.Subscription{}, refusal.New(refusal.BadArguments,
			"call.user: %s is personal, so a subscription needs the user it is for", event.Name)
	}
	at := now()
	return wake.Subscription{App: app.ID, Topic: bound.Topic, Event: event.Name, Arguments: bound.Canonical,
		Filter: bound.Filter, Once: once, CreatedAt: at, ExpiresAt: at.Add(subscriptionTTL)}, nil
}

// subscribe makes or renews a subscription of the calling conversation, which it finds or makes. Within the transaction, check is
// asked first, and and may add to what was subscribed; either may be nil.
func (c *Core) subscribe(ctx context.Context, app wake.App, call wake.Call, want wake.Subscription, check func(store.Reader, string) error,
	and func(store.Tx, wake.Subscription) (wake.Subscription, error)) (Subscribed, error) {
	if err := c.checkCall(app, call); err != nil {
		return Subscribed{}, err
	}
	agent := harness.Recognise(call)
	fresh, id := newConversation(app, call, agent), "sub_"+credential.NewID()
	if err := c.countApp(ctx, app.ID); err != nil {
		return Subscribed{}, fault(err)
	}
	var conversation wake.Conversation
	made := 0 // conversations
	done := Subscribed{Agent: agent}
	err := c.store.Update(ctx, func(tx store.Tx) (err error) {
		if check != nil {
			if err := check(tx, app.ID); err != nil {
				return err
			}
		}
		created := false
		if conversation, created, err = c.findOrMake(tx, app, call, agent, fresh); err != nil {
			return err
		}
		if made = 0; created {
			made = 1
		}
		s := want
		s.ID, s.Conversation, s.User = id, conversation.ID, conversation.User
		done.Subscription, done.Created, err = c.put(tx, s)
		if err == nil && and != nil {
			done.Subscription, err = and(tx, done.Subscription)
		}
		return err
	})
	if err != nil {
		return Subscribed{}, fault(err)
	}
	s := done.Subscription
	c.bus.Hint(bus.Key{App: app.ID, Topic: conversation.Topic()})
	kind := trace.Subscribed
	if !done.Created {
		kind = trace.Renewed
	} else {
		c.limits.made(s, made)
	}
	c.feed.Put(trace.Entry{Kind: kind, App: app.ID, Event: s.Event, Topic: s.Topic, Conversation: conversation.ID, Subscription: s.ID,
		Harness: agent.Harness, Path: string(agent.Path)})
	done.Session = c.master.Mint(credential.SessionKey, conversation.ID)
	done.Addition, err = c.compose(ctx, app, call, agent, conversation, true)
	return done, fault(err)
}

// put keeps a subscription, or renews the conversation's live one to the same thing.
func (c *Core) put(tx store.Tx, s wake.Subscription) (kept wake.Subscription, created bool, err error) {
	old, err := tx.SubscriptionOf(s.Conversation, s.Topic, s.Event, s.Arguments)
	switch {
	case err == nil && old.Live(s.CreatedAt):
		old.ExpiresAt, old.Once, old.Filter = s.ExpiresAt, s.Once, s.Filter
		return old, false, tx.PutSubscription(old)
	case err == nil: // it expired and was not swept yet: what it was owed stays owed
		if _, err := end(tx, []wake.Subscription{old}); err != nil {
			return s, false, err
		}
	case !errors.Is(err, store.ErrNotFound):
		return s, false, err
	}
	if err := c.roomForSubscription(tx, s); err != nil {
		return s, false, err
	}
	log, err := tx.Log()
	if err != nil {
		return s, false, err
	}
	s.From = log.Head
	return s, true, tx.PutSubscription(s)
}

// UnsubscribeEvent ends the calling conversation's subscription to an event with these arguments. It reports whether there was
// one.
func (c *Core) UnsubscribeEvent(ctx context.Context, app wake.App, call wake.Call, name string, arguments json.RawMessage) (bool, error) {
	if err := c.checkCall(app, call); err != nil {
		return false, err
	}
	agent := harness.Recognise(call)
	var ended []wake.Subscription
	err := c.withManifest(ctx, app.ID, func(m manifest) error {
		event, err := m.event(name)
		if err != nil {
			return err
		}
		bound, err := event.Bind(arguments)
		if err != nil {
			return err
		}
		return c.store.Update(ctx, func(tx store.Tx) error {
			ended = nil
			conversation, err := c.find(tx, app, call, agent)
			if errors.Is(err, errNoConversation) {
				return nil
			}
			if err != nil {
				return err
			}
			s, err := tx.SubscriptionOf(conversation.ID, bound.Topic, name, bound.Canonical)
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			ended, err = end(tx, []wake.Subscription{s})
			return err
		})
	})
	c.announceEnds(ended)
	return len(ended) > 0, err
}

// EndUserSubscription ends one of a user's subscriptions, of a conversation or a webhook, by its id. It reports whether there
// was one.
func (c *Core) EndUserSubscription(ctx context.Context, app wake.App, user, id string) (bool, error) {
	if err := wake.CheckUser("user", user); err != nil {
		return false, err
	}
	if !wake.CouldBeID(id) {
		return false, nil
	}
	var ended []wake.Subscription
	var hooks []wake.Webhook
	err := c.store.Update(ctx, func(tx store.Tx) error {
		ended, hooks = nil, nil
		s, err := tx.Subscription(id)
		if err == nil && s.App == app.ID && s.User == user {
			ended, err = end(tx, []wake.Subscription{s})
			return err
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		w, err := tx.Webhook(id)
		if err == nil && w.App == app.ID && w.User == user {
			hooks, err = endByApp(tx, w)
			return err
		}
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
	c.announceEnds(ended)
	c.announceHookEnds(hooks...)
	return len(hooks)+len(ended) > 0, fault(err)
}

// UserSubscriptions lists a user's live subscriptions to the app's events, those of conversations and those by webhook.
func (c *Core) UserSubscriptions(ctx context.Context, app wake.App, user string) (subs []wake.Subscription, hooks []wake.Webhook, err error) {
	if err := wake.CheckUser("user", user); err != nil {
		return nil, nil, err
	}
	at := now()
	err = c.store.View(ctx, func(r store.Reader) error {
		all, err := r.SubscriptionsOfUser(app.ID, user)
		if err != nil {
			return err
		}
		subs = nil
		for _, s := range all {
			if s.Event != "" && s.Live(at) && !s.Claimed {
				subs = append(subs, s)
			}
		}
		allHooks, err := r.WebhooksOfUser(app.ID, user)
		if err != nil {
			return err
		}
		hooks = nil
		for _, w := range allHooks {
			if w.Live(at) {
				hooks = append(hooks, w)
			}
		}
		return nil
	})
	return subs, hooks, fault(err)
}

// A Standing is a live subscription as an operator sees it.
type Standing struct {
	Subscription wake.Subscription
	Conversation wake.Conversation
	Via          string // how the conversation is connected now; empty when it is not
}

// A StandingWebhook is a webhook as an operator sees it.
type StandingWebhook struct {
	wake.Webhook
	Health wake.Health
}

// Standing lists the live subscriptions of an app's conversations, and its webhooks.
func (c *Core) Standing(ctx context.Context, app string) (standing []Standing, hooks []StandingWebhook, err error) {
	at := now()
	err = c.store.View(ctx, func(r store.Reader) error {
		standing, hooks = nil, nil
		if _, err := r.App(app); err != nil {
			return err
		}
		subs, err := r.SubscriptionsOfApp(app)
		if err != nil {
			return err
		}
		for _, s := range subs {
			if !s.Live(at) {
				continue
			}
			conversation, err := r.Conversation(s.Conversation)
			if err != nil {
				return err
			}
			standing = append(standing, Standing{Subscription: s, Conversation: conversation})
		}
		all, err := r.WebhooksOfApp(app)
		if err != nil {
			return err
		}
		for _, w := range all {
			health, err := r.Health(w.ID)
			if err != nil {
				return err
			}
			hooks = append(hooks, StandingWebhook{w, health})
		}
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, refusal.New(refusal.UnknownApp, "there is no app %s", wake.Quote(app))
	}
	if err != nil {
		return nil, nil, fault(err)
	}
	conversations := make([]string, len(standing))
	for i, one := range standing {
		conversations[i] = one.Conversation.ID
	}
	paths, err := c.via(ctx, conversations...)
	for i := range standing {
		standing[i].Via = paths[standing[i].Conversation.ID]
	}
	return standing, hooks, fault(err)
}
