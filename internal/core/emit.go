package core

import (
	"context"
	"encoding/json"

	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/refusal"
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
	if err := e.check(); err != nil {
		return Emitted{}, err
	}
	var done Emitted
	err := c.withManifest(ctx, app.ID, func(m manifest) error {
		o, err := m.bind(app, e)
		if err != nil {
			return err
		}
		done, err = c.append(ctx, o, m.current)
		return err
	})
	return done, err
}

// check refuses what is wrong whatever the event.
func (e Emit) check() error { return checkOccurrence("text", e.Text, "id", e.ID, "payload", e.Payload) }

// bind checks an emit against its event and makes the occurrence of it.
func (m manifest) bind(app wake.App, e Emit) (wake.Occurrence, error) {
	event, err := m.event(e.Name)
	if err != nil {
		return wake.Occurrence{}, err
	}
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
	return wake.Occurrence{App: app.ID, Kind: wake.KindEvent, Event: event.Name, Topics: []string{bound.Topic}, Arguments: bound.Canonical,
		Text: text, Data: e.Payload, To: e.To, Key: e.ID, At: now(), Fleeting: event.DeleteOnDelivery}, nil
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
