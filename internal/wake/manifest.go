package wake

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rouse-dev/rouse/internal/refusal"
)

// A Manifest is what an app said it may emit.
type Manifest struct {
	// Events by name; nil when the app said nothing of events.
	Events map[string]*Event
}

// An Event is one event type as the app's manifest defines it.
type Event struct {
	Name             string
	Description      string
	Topic            string            // a template: {argument} stands for its value
	Filter           map[string]string // payload field → template
	Personal         bool              // reaches the one user an emit names
	DeleteOnDelivery bool              // its content is removed once delivered
	Public           *bool             // open to any native client; nil when the SDK does not know the word
	Delivery         []string          // the ways a native client may have it, of those below; nil is all of them

	arguments, payload *shape
	route              []piece  // Topic, taken apart
	filters            []source // Filter, taken apart
}

// The ways in which a native client receives an event, as MCP Events names them.
const (
	DeliveryPoll    = "poll"
	DeliveryPush    = "push"
	DeliveryWebhook = "webhook"
)

// Offers reports whether a native client may have the event in that way.
func (e *Event) Offers(delivery string) bool {
	return e.Delivery == nil || slices.Contains(e.Delivery, delivery)
}

// event is an Event on the wire.
type event struct {
	Name             *string           `json:"name"`
	Description      *string           `json:"description"`
	Arguments        json.RawMessage   `json:"arguments"`
	Payload          json.RawMessage   `json:"payload"`
	Topic            *string           `json:"topic"`
	Filter           map[string]string `json:"filter"`
	Personal         bool              `json:"personal"`
	DeleteOnDelivery bool              `json:"delete_on_delivery"`
	Public           *bool             `json:"public"`
	Delivery         []string          `json:"delivery"`
}

// ParseManifest reads a manifest, whole or not at all. Its errors are refusals that name the event and the field.
func ParseManifest(body json.RawMessage) (*Manifest, error) {
	var raw struct {
		Events *[]json.RawMessage `json:"events"`
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, refusal.New(refusal.BadRequest, "events: must be a list of events")
	}
	m := &Manifest{}
	if raw.Events == nil {
		return m, nil
	}
	if len(*raw.Events) > MaxEvents {
		return nil, refusal.New(refusal.BadRequest, "events: at most %d", MaxEvents)
	}
	m.Events = make(map[string]*Event, len(*raw.Events))
	for i, one := range *raw.Events {
		e, err := parseEvent(fmt.Sprintf("events[%d]", i), one)
		if err != nil {
			return nil, err
		}
		if m.Events[e.Name] != nil {
			return nil, refusal.New(refusal.BadRequest, "events[%d].name: %s is there twice", i, e.Name)
		}
		m.Events[e.Name] = e
	}
	return m, nil
}

func parseEvent(at string, body json.RawMessage) (*Event, error) {
	bad := func(format string, args ...any) error {
		return refusal.New(refusal.BadRequest, at+format, args...)
	}
	if len(body) == 0 || body[0] != '{' {
		return nil, bad(": must be an object")
	}
	var raw event
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, bad(": %s", typeError(err))
	}
	if raw.Name == nil {
		return nil, bad(".name: is missing")
	}
	if err := CheckEventName(*raw.Name); err != nil {
		return nil, bad(".name: %s", refusal.Of(err).Message)
	}
	at = "event " + *raw.Name
	if raw.Description == nil || *raw.Description == "" {
		return nil, bad(": description is missing")
	}
	e := &Event{Name: *raw.Name, Description: *raw.Description, Filter: raw.Filter,
		Personal: raw.Personal, DeleteOnDelivery: raw.DeleteOnDelivery, Public: raw.Public, Delivery: raw.Delivery}
	if e.Delivery != nil && len(e.Delivery) == 0 {
		return nil, bad(": delivery: at least one way, or the member left out")
	}
	for _, way := range e.Delivery {
		if way != DeliveryPoll && way != DeliveryPush && way != DeliveryWebhook {
			return nil, bad(": delivery: %s is not poll, push or webhook", Quote(way))
		}
	}
	var err error
	if e.arguments, err = parseShape(raw.Arguments); err != nil {
		return nil, bad(": arguments: %s", err)
	}
	if e.payload, err = parseShape(raw.Payload); err != nil {
		return nil, bad(": payload: %s", err)
	}
	for name := range e.arguments.schema.Properties {
		if !argumentName.MatchString(name) {
			return nil, bad(": argument %s: a-z 0-9 _, beginning with a letter, at most 64 characters", Quote(name))
		}
	}
	if raw.Topic == nil {
		return nil, bad(": topic is missing")
	}
	e.Topic = *raw.Topic
	if err := e.checkTemplates(); err != nil {
		return nil, bad(": %s", err)
	}
	e.route, e.filters = pieces(e.Topic), sources(e.Filter)
	return e, nil
}

// Breaks says why subscriptions to this event cannot go on under its next definition; empty when they can. Additions never
// break: new optional arguments, new payload fields, wider types.
func (e *Event) Breaks(next *Event) string {
	if e.Topic != next.Topic {
		return "it is routed by other arguments"
	}
	if e.Personal != next.Personal {
		return "it changed who it is for"
	}
	if reason := e.arguments.breaks(next.arguments, true); reason != "" {
		return "its arguments changed: " + reason
	}
	if reason := e.payload.breaks(next.payload, false); reason != "" {
		return "its payload changed: " + reason
	}
	return ""
}

// BreaksPayload reports whether the payloads of the next definition may be other than a subscriber of this one expects; see
// [Event.Breaks].
func (e *Event) BreaksPayload(next *Event) bool { return e.payload.breaks(next.payload, false) != "" }
