package core

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// The longest and shortest life an app may give a topic subscription.
const (
	minTTL = time.Second
	maxTTL = 365 * 24 * time.Hour
)

// TopicOptions are what an app may say of a topic subscription. The zero value is a lasting one without a filter.
type TopicOptions struct {
	Filter wake.Filter
	Once   bool
	TTL    time.Duration // 0: 30 days
	// Replay is how far back the subscription begins: it is owed what was published since then, too. 0: from now on. A
	// subscription that is renewed brings nothing again.
	Replay time.Duration
}

// SubscribeTopic subscribes the conversation a call comes from to a plain topic. It is durable when this returns.
func (c *Core) SubscribeTopic(ctx context.Context, app wake.App, call wake.Call, topic string, o TopicOptions) (Subscribed, error) {
	if err := wake.CheckTopic(topic); err != nil {
		return Subscribed{}, err
	}
	if err := wake.CheckPrivateTopic(topic, call.User); err != nil {
		return Subscribed{}, err
	}
	ttl := o.TTL
	if ttl == 0 {
		ttl = subscriptionTTL
	}
	if ttl < minTTL || ttl > maxTTL {
		return Subscribed{}, refusal.New(refusal.BadRequest, "ttl: between %s and %d days", minTTL, maxTTL/(24*time.Hour))
	}
	at := now()
	want := wake.Subscription{App: app.ID, Topic: topic, User: call.User, Filter: o.Filter, Once: o.Once, CreatedAt: at, ExpiresAt: at.Add(ttl)}
	if o.Replay == 0 {
		return c.subscribe(ctx, app, call, want, nil, nil)
	}
	var passed wake.Seq
	if o.Once {
		var err error
		if passed, err = c.passOver(ctx, want, o.Replay); err != nil {
			return Subscribed{}, fault(err)
		}
	}
	return c.subscribe(ctx, app, call, want, nil, func(tx store.Tx, s wake.Subscription) (wake.Subscription, error) {
		begin, err := tx.PlaceBefore(at.Add(-o.Replay))
		if err != nil {
			return s, err
		}
		return makeReplay(tx, s, max(begin, passed))
	})
}

// UnsubscribeTopic ends the calling conversation's subscription to a topic, or to all topics when topic is empty. It returns how
// many it ended.
func (c *Core) UnsubscribeTopic(ctx context.Context, app wake.App, call wake.Call, topic string) (int, error) {
	if err := c.checkCall(app, call); err != nil {
		return 0, err
	}
	agent := harness.Recognise(call)
	return c.endTopics(ctx, topic, func(r store.Reader) ([]wake.Subscription, error) {
		conversation, err := c.find(r, app, call, agent)
		if errors.Is(err, errNoConversation) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return r.SubscriptionsOf(conversation.ID)
	})
}

// UnsubscribeUser ends a user's subscriptions to a topic, or to all topics when topic is empty, in whatever conversation. It
// returns how many it ended.
func (c *Core) UnsubscribeUser(ctx context.Context, app wake.App, user, topic string) (int, error) {
	if err := wake.CheckUser("user", user); err != nil {
		return 0, err
	}
	return c.endTopics(ctx, topic, func(r store.Reader) ([]wake.Subscription, error) {
		return r.SubscriptionsOfUser(app.ID, user)
	})
}

// endStep is how many subscriptions one transaction ends: the database's writer serves others between the steps.
const endStep = 500

// endTopics ends the listed subscriptions to a topic by its name, or to all when topic is empty, in steps.
func (c *Core) endTopics(ctx context.Context, topic string, list func(store.Reader) ([]wake.Subscription, error)) (int, error) {
	var subs []wake.Subscription
	if err := c.store.View(ctx, func(r store.Reader) (err error) {
		subs, err = list(r)
		return err
	}); err != nil {
		return 0, fault(err)
	}
	subs = slices.DeleteFunc(subs, func(s wake.Subscription) bool { return s.Event != "" || topic != "" && s.Topic != topic })
	total := 0
	for step := range slices.Chunk(subs, endStep) {
		var ended []wake.Subscription
		if err := c.store.Update(ctx, func(tx store.Tx) (err error) {
			ended, err = end(tx, step)
			return err
		}); err != nil {
			return total, fault(err)
		}
		c.announceEnds(ended)
		total += len(ended)
	}
	return total, nil
}

// A Publish is something an app says on its own topics.
type Publish struct {
	Topics []string
	Text   string
	Data   json.RawMessage // compact; nil for none
	ID     string          // the app's own id; may be empty
}

// Publish writes an occurrence to several topics at once: whoever is subscribed to more than one of them receives it once.
func (c *Core) Publish(ctx context.Context, app wake.App, p Publish) (Emitted, error) {
	if len(p.Topics) == 0 || len(p.Topics) > wake.MaxTopics {
		return Emitted{}, refusal.New(refusal.BadRequest, "topics: between 1 and %d", wake.MaxTopics)
	}
	for _, topic := range p.Topics {
		if err := wake.CheckTopic(topic); err != nil {
			return Emitted{}, err
		}
	}
	if p.Text == "" {
		return Emitted{}, refusal.New(refusal.BadRequest, "event.text: must not be empty")
	}
	if err := checkOccurrence("event.text", p.Text, "event.id", p.ID, "event.data", p.Data); err != nil {
		return Emitted{}, err
	}
	topics := slices.Compact(slices.Sorted(slices.Values(p.Topics)))
	return c.append(ctx, wake.Occurrence{App: app.ID, Kind: wake.KindEvent, Topics: topics, Text: p.Text, Data: p.Data, Key: p.ID, At: now()}, nil)
}

// CloseTopic ends every subscription to a topic and tells each conversation. It returns how many it ended. It works in steps: when
// it fails on the way, those that were ended stay so, and calling it again goes on with the others.
func (c *Core) CloseTopic(ctx context.Context, app wake.App, topic string) (closed int, err error) {
	if err := wake.CheckTopic(topic); err != nil {
		return 0, err
	}
	text := harness.EndedText("the topic "+topic, "the app "+app.Name+" closed it")
	for {
		var subs []wake.Subscription
		live := 0
		err := c.store.Update(ctx, func(tx store.Tx) (err error) {
			if subs, err = tx.SomeSubscriptionsTo(app.ID, topic, endStep); err != nil {
				return err
			}
			live = 0
			for _, s := range subs {
				if s.Live(now()) {
					live++
				}
			}
			return endAndTell(tx, subs, text)
		})
		if err != nil {
			return closed, fault(err)
		}
		closed += live
		c.announceEnds(subs)
		if len(subs) < endStep {
			return closed, nil
		}
	}
}

// A TopicStatus says how many conversations wait on a topic, and how they are connected now.
type TopicStatus struct {
	Subscriptions int
	Via           map[string]int // by path, each path there
}

// fewSubscriptions is up to how many subscriptions are looked at one by one; of more, the conversations that are connected are.
const fewSubscriptions = 1000

// TopicStatus reads how many conversations are subscribed to a topic and connected.
func (c *Core) TopicStatus(ctx context.Context, app wake.App, topic string) (TopicStatus, error) {
	if err := wake.CheckTopic(topic); err != nil {
		return TopicStatus{}, err
	}
	status := TopicStatus{}
	at := now()
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		status.Via = map[string]int{ViaStream: 0, ViaPoll: 0, ViaHooks: 0, ViaWebhook: 0}
		if status.Subscriptions, err = r.CountSubscriptionsTo(app.ID, topic, at); err != nil || c.nodes != nil {
			return err
		}
		return c.countConnected(r, app.ID, topic, at, status.Subscriptions, status.Via)
	})
	if err != nil || c.nodes == nil {
		return status, fault(err)
	}
	via, err := c.nodes.store.CountConnected(ctx, app.ID, topic, at)
	maps.Copy(status.Via, via)
	return status, fault(err)
}

// countConnected counts, by their paths, the conversations connected to this node that are subscribed to the topic, as so many
// are.
func (c *Core) countConnected(r store.Reader, app, topic string, at time.Time, subscribed int, via map[string]int) error {
	if subscribed <= fewSubscriptions {
		subs, err := r.SomeSubscriptionsTo(app, topic, fewSubscriptions)
		for _, s := range subs {
			if path := c.presence.here(s.Conversation); path != "" && s.Live(at) {
				via[path]++
			}
		}
		return err
	}
	for conversation, path := range c.presence.connected(app) {
		s, err := r.SubscriptionOf(conversation, topic, "", nil)
		switch {
		case err == nil && s.Live(at):
			via[path]++
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return err
		}
	}
	return nil
}
