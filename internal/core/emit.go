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
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// An Emit is one thing an app says has happened.
type Emit struct {
	Name      string
	Arguments json.RawMessage
	Payload   json.RawMessage // compact; checked for form and size by whoever read it
	Text      string          // empty: the event's name and the start of the payload
	ID        string          // the app's own id, which makes a repeated emit count once; may be empty
	To        string          // the one user of a personal event
}

// An Emitted is what became of it.
type Emitted struct {
	ID        string // the occurrence's id in this core
	Matched   int    // conversations and webhooks that receive it
	Duplicate bool   // an earlier emit had this id; Matched is that one's
}

// Emit writes an occurrence to the log and returns once it is durable.
func (c *Core) Emit(ctx context.Context, app wake.App, e Emit) (Emitted, error) {
	if err := checkOccurrence("text", e.Text, "id", e.ID, "payload", e.Payload); err != nil {
		return Emitted{}, err
	}
	var done Emitted
	err := c.withManifest(ctx, app.ID, func(m manifest) error {
		event, err := m.event(e.Name)
		if err != nil {
			return err
		}
		o, err := bindOccurrence(event, e)
		if err != nil {
			return err
		}
		o.App = app.ID
		done, err = c.append(ctx, o, m.current)
		return err
	})
	return done, err
}

// bindOccurrence checks an emit against its event and makes the occurrence of it.
func bindOccurrence(event *wake.Event, e Emit) (wake.Occurrence, error) {
	bound, err := event.Bind(e.Arguments)
	if err != nil {
		return wake.Occurrence{}, err
	}
	if err := event.CheckPayload(e.Payload); err != nil {
		return wake.Occurrence{}, err
	}
	if err := checkRecipient(event, e.To); err != nil {
		return wake.Occurrence{}, err
	}
	text := e.Text
	if text == "" {
		text = harness.DefaultText(event.Name, string(e.Payload))
	}
	return wake.Occurrence{Kind: wake.KindEvent, Event: event.Name, Topics: []string{bound.Topic}, Arguments: bound.Canonical,
		Text: text, Data: e.Payload, To: e.To, Key: e.ID, At: now()}, nil
}

// checkRecipient refuses a personal event for nobody, and a recipient where everyone subscribed receives it.
func checkRecipient(event *wake.Event, to string) error {
	switch {
	case event.Personal && to == "":
		return refusal.New(refusal.BadArguments, "to: %s is personal, so it takes the one user it is for", event.Name)
	case !event.Personal && to != "":
		return refusal.New(refusal.BadArguments, "to: %s is not personal, it goes to everyone subscribed", event.Name)
	case to != "":
		return wake.CheckUser("to", to)
	}
	return nil
}

// checkOccurrence refuses a text, id or payload over its limit, under the name that the caller's field has.
func checkOccurrence(textField, text, idField, id, dataField string, data json.RawMessage) error {
	if len(text) > wake.MaxText {
		return refusal.New(refusal.BadRequest, "%s: at most %d bytes", textField, wake.MaxText)
	}
	if err := wake.CheckString(idField, id, wake.MaxKey); err != nil {
		return err
	}
	if len(data) > wake.MaxPayload {
		return refusal.New(refusal.BadPayload, "%s: at most %d bytes of compact JSON", dataField, wake.MaxPayload)
	}
	return nil
}

// append writes an occurrence, decides who receives it, and queues what must be queued, in one transaction. check, if not
// nil, is asked first within it.
func (c *Core) append(ctx context.Context, o wake.Occurrence, check func(r store.Reader, app string) error) (Emitted, error) {
	var done Emitted
	var matched matches
	err := c.store.Update(ctx, func(tx store.Tx) error {
		done, matched = Emitted{}, matches{}
		if check != nil {
			if err := check(tx, o.App); err != nil {
				return err
			}
		}
		if o.Key != "" {
			earlier, err := tx.OccurrenceOf(o.App, o.Event, o.Key)
			if err == nil {
				done = Emitted{ID: earlier.ID(c.epoch), Matched: earlier.Matched, Duplicate: true}
				return nil
			}
			if !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		if err := matched.find(tx, o); err != nil {
			return err
		}
		o.Matched = matched.count()
		seq, err := tx.Append(o)
		if err != nil {
			return err
		}
		done = Emitted{ID: wake.OccurrenceID(c.epoch, seq), Matched: o.Matched}
		return matched.write(tx, seq, o.At)
	})
	if err != nil {
		return Emitted{}, fault(err)
	}
	c.account(o, done, matched)
	if !done.Duplicate {
		c.bus.Hint(keysOf(o.App, o.Topics)...)
		if len(matched.webhooks) > 0 {
			c.hintDeliveries()
		}
	}
	return done, nil
}

// matches are the subscribers that receive an occurrence.
type matches struct {
	conversations map[string]struct{}
	once          []wake.Subscription // fulfilled by it
	webhooks      []wake.Webhook
}

// find asks each subscriber of the occurrence's topics whether it takes it.
func (m *matches) find(r store.Reader, o wake.Occurrence) error {
	subs, err := r.SubscriptionsTo(o.App, o.Topics)
	if err != nil {
		return err
	}
	for _, s := range subs {
		if !s.Takes(o) {
			continue
		}
		if m.conversations == nil {
			m.conversations = map[string]struct{}{}
		}
		m.conversations[s.Conversation] = struct{}{}
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

func (m *matches) count() int { return len(m.conversations) + len(m.webhooks) }

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
		if via := c.presence.via(conversation); via != "" {
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
