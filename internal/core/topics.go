package core

import (
	"context"
	"encoding/json"
	"errors"
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
	return c.subscribe(ctx, app, call, wake.Subscription{App: app.ID, Topic: topic, Filter: o.Filter, Once: o.Once,
		CreatedAt: at, ExpiresAt: at.Add(ttl)}, nil)
}

// UnsubscribeTopic ends the calling conversation's subscription to a topic, or to all topics when topic is empty. It returns how
// many it ended.
func (c *Core) UnsubscribeTopic(ctx context.Context, app wake.App, call wake.Call, topic string) (int, error) {
	if err := call.Check(); err != nil {
		return 0, err
	}
	agent := harness.Recognise(call)
	return c.endTopics(ctx, topic, func(tx store.Tx) ([]wake.Subscription, error) {
		conversation, err := c.find(tx, app, call, agent)
		if errors.Is(err, errNoConversation) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return tx.SubscriptionsOf(conversation.ID)
	})
}

// UnsubscribeUser ends a user's subscriptions to a topic, or to all topics when topic is empty, in whatever conversation. It
// returns how many it ended.
func (c *Core) UnsubscribeUser(ctx context.Context, app wake.App, user, topic string) (int, error) {
	if err := wake.CheckUser("user", user); err != nil {
		return 0, err
	}
	return c.endTopics(ctx, topic, func(tx store.Tx) ([]wake.Subscription, error) {
		return tx.SubscriptionsOfUser(app.ID, user)
	})
}

func (c *Core) endTopics(ctx context.Context, topic string, list func(store.Tx) ([]wake.Subscription, error)) (int, error) {
	var ended []wake.Subscription
	err := c.store.Update(ctx, func(tx store.Tx) error {
		subs, err := list(tx)
		if err != nil {
			return err
		}
		subs = slices.DeleteFunc(slices.Clone(subs), func(s wake.Subscription) bool {
			return s.Event != "" || topic != "" && s.Topic != topic
		})
		ended, err = end(tx, subs)
		return err
	})
	c.announceEnds(ended)
	return len(ended), fault(err)
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

// CloseTopic ends every subscription to a topic and tells each conversation. It returns how many it ended.
func (c *Core) CloseTopic(ctx context.Context, app wake.App, topic string) (int, error) {
	if err := wake.CheckTopic(topic); err != nil {
		return 0, err
	}
	var subs []wake.Subscription
	err := c.store.Update(ctx, func(tx store.Tx) (err error) {
		if subs, err = plainTo(tx, app.ID, topic); err != nil {
			return err
		}
		return endAndTell(tx, subs, harness.EndedText("the topic "+topic, "the app "+app.Name+" closed it"))
	})
	if err != nil {
		return 0, fault(err)
	}
	c.announceEnds(subs)
	return len(subs), nil
}

// plainTo lists the live subscriptions to a topic by its name.
func plainTo(r store.Reader, app, topic string) ([]wake.Subscription, error) {
	all, err := r.SubscriptionsTo(app, []string{topic})
	at := now()
	return slices.DeleteFunc(slices.Clone(all), func(s wake.Subscription) bool { return s.Event != "" || !s.Live(at) }), err
}

// A TopicStatus says how many conversations wait on a topic, and how they are connected now.
type TopicStatus struct {
	Subscriptions int
	Via           map[string]int
}

// TopicStatus reads how many conversations are subscribed to a topic and connected.
func (c *Core) TopicStatus(ctx context.Context, app wake.App, topic string) (TopicStatus, error) {
	if err := wake.CheckTopic(topic); err != nil {
		return TopicStatus{}, err
	}
	var subs []wake.Subscription
	if err := c.store.View(ctx, func(r store.Reader) (err error) {
		subs, err = plainTo(r, app.ID, topic)
		return err
	}); err != nil {
		return TopicStatus{}, fault(err)
	}
	status := TopicStatus{Subscriptions: len(subs), Via: map[string]int{"stream": 0, "poll": 0, "hooks": 0, "webhook": 0}}
	for _, s := range subs {
		if via := c.presence.via(s.Conversation); via != "" {
			status.Via[via]++
		}
	}
	return status, nil
}
