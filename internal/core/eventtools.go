package core

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Bounds of what the event tools say.
const (
	maxOfferText = 300 // characters of an event's description
	maxEcho      = 500 // characters of what the caller wrote
	maxHoldings  = 200 // subscriptions that are listed
)

// EventTools describes the tools by which a caller's agent subscribes itself. There are none for an app without an event that is open
// to the caller's user, nor for a client that subscribes by MCP Events.
func (c *Core) EventTools(ctx context.Context, app wake.App, call wake.Call) ([]harness.Tool, error) {
	if err := c.checkCall(app, call); err != nil {
		return nil, err
	}
	if !harness.OffersEventTools(call) {
		return nil, nil
	}
	offers, err := c.offers(ctx, app, call.User, "")
	if err != nil || len(offers) == 0 {
		return nil, err
	}
	return harness.EventTools(app.Name, offers), nil
}

// offers are the events of an app, as its manifest is now, that are open to a user, after a name and in the order of their names.
func (c *Core) offers(ctx context.Context, app wake.App, user, after string) (offers []harness.Offer, err error) {
	err = c.withManifest(ctx, app.ID, func(m manifest) error {
		if err := c.store.View(ctx, func(r store.Reader) error { return m.current(r, app.ID) }); err != nil {
			return err
		}
		offers, err = m.offers(user, after)
		return err
	})
	return offers, err
}

func (m manifest) offers(user, after string) ([]harness.Offer, error) {
	var offers []harness.Offer
	for name, event := range m.events {
		if name <= after || !event.OpenTo(user) {
			continue
		}
		schema, err := event.ArgumentsSchema()
		if err != nil {
			return nil, err
		}
		offers = append(offers, harness.Offer{Name: name, Description: oneLine(event.Description, maxOfferText), Arguments: string(schema)})
	}
	slices.SortFunc(offers, func(a, b harness.Offer) int { return cmp.Compare(a.Name, b.Name) })
	return offers, nil
}

// An EventToolCall is a call of one of the event tools, as the app's SDK passed it on.
type EventToolCall struct {
	Tool      string
	Arguments json.RawMessage // the tool's
	Problem   string          // why the event's arguments do not fit the app's schema; empty when they do
	Refused   bool            // the app's own authorization says no
}

// An EventToolAnswer is what the agent is told.
type EventToolAnswer struct {
	Text         string
	Subscription string   // the id of the one that was made or renewed; empty if none was, as are the next two
	Session      string   // of its conversation
	Addition     Addition // how the agent is woken
	Agent        harness.Agent
}

// eventToolArguments are those of all three tools, whose schemas are in package harness.
type eventToolArguments struct {
	ID        string          `json:"id"`
	Event     string          `json:"event"`
	Arguments json.RawMessage `json:"arguments"`
	Once      bool            `json:"once"`
	After     string          `json:"after"`
}

// CallEventTool does what an agent asks for with one of the event tools.
func (c *Core) CallEventTool(ctx context.Context, app wake.App, call wake.Call, q EventToolCall) (EventToolAnswer, error) {
	if err := c.checkCall(app, call); err != nil {
		return EventToolAnswer{}, err
	}
	arguments, err := q.read()
	if err != nil {
		return EventToolAnswer{}, err
	}
	answer := EventToolAnswer{Agent: harness.Recognise(call)}
	switch {
	case q.Tool == harness.SubscribeEvents:
		return c.subscribeByTool(ctx, app, call, q, arguments)
	case q.Tool == harness.ListSubscriptions:
		answer.Text, err = c.listByTool(ctx, app, call, arguments.After)
	case arguments.ID != "":
		answer.Text, err = c.unsubscribeByID(ctx, app, call, arguments.ID)
	default:
		var ended bool
		ended, err = c.UnsubscribeEvent(ctx, app, call, arguments.Event, arguments.Arguments)
		answer.Text = harness.UnsubscribedText(arguments.what(), ended)
	}
	return answer, err
}

// read reads a call's arguments strictly: an agent that is not understood is better told.
func (q EventToolCall) read() (a eventToolArguments, err error) {
	if !slices.Contains([]string{harness.SubscribeEvents, harness.UnsubscribeEvents, harness.ListSubscriptions}, q.Tool) {
		return a, refusal.New(refusal.BadRequest, "tool: there is no event tool %s", wake.Quote(q.Tool))
	}
	if len(q.Arguments) > 0 && jsonv2.Unmarshal(q.Arguments, &a, jsonv2.RejectUnknownMembers(true)) != nil {
		return a, refusal.New(refusal.BadRequest, "arguments: they do not fit the input schema of %s", q.Tool)
	}
	switch {
	case q.Tool == harness.SubscribeEvents && a.Event == "":
		return a, refusal.New(refusal.BadRequest, "arguments: event: is missing")
	case q.Tool == harness.UnsubscribeEvents && (a.Event == "") == (a.ID == ""):
		return a, refusal.New(refusal.BadRequest, "arguments: either an event with its arguments, or an id")
	}
	return a, nil
}

// what is the event that a call names with its arguments. What an agent wrote comes back to it, in bounds.
func (a eventToolArguments) what() string {
	var compact bytes.Buffer
	if json.Compact(&compact, a.Arguments) != nil {
		compact.Reset()
	}
	return strings.TrimSpace(oneLine(a.Event, wake.MaxEventName) + " " + oneLine(compact.String(), maxEcho))
}

func (c *Core) subscribeByTool(ctx context.Context, app wake.App, call wake.Call, q EventToolCall, a eventToolArguments) (EventToolAnswer, error) {
	if harness.Recognise(call).Path == harness.PathNative {
		return EventToolAnswer{}, refusal.New(refusal.Unsupported,
			"your client speaks MCP Events: it subscribes with events/subscribe, events/stream or events/poll")
	}
	var done Subscribed
	err := c.withManifest(ctx, app.ID, func(m manifest) error {
		event := m.events[a.Event]
		switch {
		case event == nil || !event.OpenTo(call.User):
			return refusal.New(refusal.UnknownEvent, "%s is not on offer; %s lists what is", wake.Quote(a.Event), harness.ListSubscriptions)
		case q.Problem != "":
			return refusal.New(refusal.BadArguments, "%s", oneLine(q.Problem, maxEcho))
		case q.Refused:
			return refused(event.Name)
		}
		want, err := toEvent(app, call, event, a.Arguments, a.Once)
		if err == nil {
			done, err = c.subscribe(ctx, app, call, want, m.current, nil)
		}
		return err
	})
	if err != nil {
		return EventToolAnswer{}, err
	}
	s := done.Subscription
	return EventToolAnswer{Text: harness.SubscribedText(s.Event+" "+string(s.Arguments), s.ID, done.Created),
		Subscription: s.ID, Session: done.Session, Addition: done.Addition, Agent: done.Agent}, nil
}

// unsubscribeByID ends one of the calling conversation's subscriptions, or another one of its user's.
func (c *Core) unsubscribeByID(ctx context.Context, app wake.App, call wake.Call, id string) (string, error) {
	ended, err := c.endOwn(ctx, app, call, id)
	if err == nil && !ended && call.User != "" {
		ended, err = c.EndUserSubscription(ctx, app, call.User, id)
	}
	return harness.UnsubscribedText(oneLine(id, maxEcho), ended), err
}

// endOwn ends one of the calling conversation's subscriptions. Another's id is as good as nobody's.
func (c *Core) endOwn(ctx context.Context, app wake.App, call wake.Call, id string) (bool, error) {
	if !wake.CouldBeID(id) {
		return false, nil
	}
	var ended []wake.Subscription
	err := c.store.Update(ctx, func(tx store.Tx) error {
		ended = nil
		conversation, err := c.find(tx, app, call, harness.Recognise(call))
		if errors.Is(err, errNoConversation) {
			return nil
		}
		if err != nil {
			return err
		}
		s, err := tx.Subscription(id)
		if errors.Is(err, store.ErrNotFound) || err == nil && s.Conversation != conversation.ID {
			return nil
		}
		if err != nil {
			return err
		}
		ended, err = end(tx, []wake.Subscription{s})
		return err
	})
	c.announceEnds(ended)
	return len(ended) > 0, fault(err)
}

// listByTool says what the calling conversation has, what its user has elsewhere, and what else there is to have.
func (c *Core) listByTool(ctx context.Context, app wake.App, call wake.Call, after string) (string, error) {
	offers, err := c.offers(ctx, app, call.User, after)
	if err != nil {
		return "", err
	}
	own, conversation, err := c.ownSubscriptions(ctx, app, call)
	if err != nil {
		return "", err
	}
	var here, elsewhere []harness.Holding
	for _, s := range own {
		here = append(here, holding(s, ""))
	}
	if call.User != "" {
		subs, hooks, err := c.UserSubscriptions(ctx, app, call.User)
		if err != nil {
			return "", err
		}
		for _, s := range subs {
			if s.Conversation != conversation {
				elsewhere = append(elsewhere, holding(s, harness.AnotherConversation))
			}
		}
		for _, w := range hooks {
			elsewhere = append(elsewhere, harness.Holding{ID: w.ID, What: w.Event, Arguments: string(w.Arguments), Where: harness.AtWebhook(wake.ShownHost(w.URL))})
		}
	}
	more := max(0, len(here)-maxHoldings) + max(0, len(elsewhere)-maxHoldings)
	return harness.HoldingsText(here[:min(len(here), maxHoldings)], elsewhere[:min(len(elsewhere), maxHoldings)], more, offers), nil
}

// ownSubscriptions are the live ones of the calling conversation, which has no id when there is none.
func (c *Core) ownSubscriptions(ctx context.Context, app wake.App, call wake.Call) (own []wake.Subscription, conversation string, err error) {
	err = c.store.View(ctx, func(r store.Reader) error {
		own, conversation = nil, ""
		found, err := c.find(r, app, call, harness.Recognise(call))
		if errors.Is(err, errNoConversation) {
			return nil
		}
		if err != nil {
			return err
		}
		conversation = found.ID
		own, err = r.SubscriptionsOf(found.ID)
		return err
	})
	at := now()
	return slices.DeleteFunc(own, func(s wake.Subscription) bool { return !s.Live(at) || s.Claimed }), conversation, fault(err)
}

func holding(s wake.Subscription, where string) harness.Holding {
	return harness.Holding{ID: s.ID, What: strings.TrimPrefix(subscribedTo(s), "the "), Arguments: string(s.Arguments), Once: s.Once, Where: where}
}
