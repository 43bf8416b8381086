package wakeshift

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

const (
	maxEventName = 64
	// voucherArgument is what a client may add to an event's arguments to show
	// that a tool has already subscribed it. The core reads it.
	voucherArgument = "wakeshift_voucher"
)

var (
	eventName    = regexp.MustCompile(`^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*){0,4}$`)
	argumentName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
)

// An EventDef says what an event is. Description and Text are required.
//
// Args is a struct whose JSON fields are the event's arguments. Required strings,
// integers and booleans route: an occurrence reaches those who subscribed with
// equal values, which are lowercase ids (a-z 0-9 . _ -). An optional argument (a
// pointer, or omitempty) filters: an occurrence must have the same value in the
// payload field of its name. Payload is a struct or a map.
type EventDef[Args, Payload any] struct {
	// Title is a short name for people; may be empty.
	Title string
	// Description tells an agent when the event happens.
	Description string
	// Text renders an occurrence as what the agent reads, at most 16 KiB.
	Text func(Payload, Args) string
	// Public lets any client of MCP Events, and any agent with the tool
	// subscribe_events, subscribe without one of the app's own tools.
	Public bool
	// Personal: each occurrence is for the one user [To] names.
	Personal bool
	// DeleteOnDelivery: the core deletes text and payload once they are delivered.
	DeleteOnDelivery bool
	// Authorize decides whether somebody may subscribe with these arguments; nil
	// allows everybody. An error or a panic refuses and is logged. While a client
	// streams (events/stream) it is asked again every 5 minutes, with a context
	// that has no values; a no ends the stream.
	Authorize func(context.Context, Subscriber, Args) (bool, error)
	// OnSubscribe is called after somebody subscribed, and again when they renew:
	// make it idempotent. It delays the answer, so that longer work belongs into
	// a goroutine or [Event.Watch]. A panic is logged. Nil does nothing.
	OnSubscribe func(context.Context, Subscription[Args])
	// ArgsSchema and PayloadSchema replace the schemas inferred from the types.
	// They are copied. Their $ref may only name their own $defs.
	ArgsSchema    *jsonschema.Schema
	PayloadSchema *jsonschema.Schema
}

// A Subscriber is who wants to subscribe.
type Subscriber struct {
	// User is the app's own id for the person, from Identify; empty when unknown.
	User string
	// Client is the MCP client's name; empty when unknown. It is what the client
	// says of itself.
	Client string
	// Native: the client subscribes by itself, through MCP Events, and not through
	// one of the app's tools.
	Native bool
}

// A Subscription is one that was just made or renewed.
type Subscription[Args any] struct {
	Subscriber
	// ID is the subscription's id, the same when it is renewed; empty for a stream
	// (events/stream), which lives as long as its request.
	ID string
	// Args are the arguments subscribed with.
	Args Args
}

// An Event is one of the app's events. It is safe for concurrent use.
type Event[Args, Payload any] struct {
	event *event
	text  func(Payload, Args) string
}

// AnyEvent is an [*Event] of whatever types.
type AnyEvent interface {
	// Name is the event's name.
	Name() string

	definition() *event
}

// Name is the event's name.
func (e *Event[Args, Payload]) Name() string { return e.event.name }

func (e *Event[Args, Payload]) definition() *event { return e.event }

// An event is what does not depend on an event's types.
type event struct {
	wake             *Wakeshift
	name             string
	title            string
	description      string
	public           bool
	personal         bool
	deleteOnDelivery bool
	arguments        *schema
	payload          *schema
	topic            string
	filter           map[string]string

	// nil if the event has no such hook
	authorize   func(context.Context, Subscriber, json.RawMessage) (bool, error)
	onSubscribe func(context.Context, Subscriber, string, json.RawMessage) error
}

// A manifestEntry is an event as the core keeps it.
type manifestEntry struct {
	Name             string            `json:"name"`
	Title            string            `json:"title,omitempty"`
	Description      string            `json:"description"`
	Arguments        map[string]any    `json:"arguments"`
	Payload          map[string]any    `json:"payload"`
	Topic            string            `json:"topic"`
	Filter           map[string]string `json:"filter,omitempty"`
	Personal         bool              `json:"personal,omitempty"`
	DeleteOnDelivery bool              `json:"delete_on_delivery,omitempty"`
	Public           bool              `json:"public"` // absent would mean something else
}

// DefineEvent defines one of the app's events. The name is of lowercase words
// joined by dots, at most five words and 64 characters; wakeshift. is reserved.
// It may be called at any time: the core is told before the next call that
// concerns events, and an attached server lists the event from then on.
//
// What the core is told are all events of this Wakeshift, in place of those it
// knew, and subscriptions to an event that is gone end. So every process of an
// app must define all of the app's events. The error names what is wrong with the
// name, the definition or the types.
func DefineEvent[Args, Payload any](wake *Wakeshift, name string, def EventDef[Args, Payload]) (*Event[Args, Payload], error) {
	fail := func(err error) (*Event[Args, Payload], error) {
		return nil, fmt.Errorf("wakeshift: event %q: %w", name, err)
	}
	if wake == nil {
		return fail(errors.New("it needs a Wakeshift"))
	}
	if def.Text == nil {
		return fail(errors.New("it needs Text"))
	}
	e := &event{
		wake: wake, name: name, title: def.Title, description: strings.TrimSpace(def.Description),
		public: def.Public, personal: def.Personal, deleteOnDelivery: def.DeleteOnDelivery,
	}
	if err := e.checkName(); err != nil {
		return fail(err)
	}
	var err error
	if reflect.TypeFor[Args]().Kind() == reflect.Map && def.ArgsSchema == nil {
		return fail(errors.New("its Args must be a struct, or come with an ArgsSchema"))
	}
	if e.arguments, err = newSchema(reflect.TypeFor[Args](), def.ArgsSchema); err != nil {
		return fail(fmt.Errorf("schema of the arguments: %w", err))
	}
	if e.payload, err = newSchema(reflect.TypeFor[Payload](), def.PayloadSchema); err != nil {
		return fail(fmt.Errorf("schema of the payload: %w", err))
	}
	if err := e.route(); err != nil {
		return fail(err)
	}
	e.authorize, e.onSubscribe = typedHooks(def)
	if err := wake.manifest.add(e); err != nil {
		return nil, err
	}
	return &Event[Args, Payload]{event: e, text: def.Text}, nil
}

func (e *event) checkName() error {
	switch {
	case !eventName.MatchString(e.name) || len(e.name) > maxEventName:
		return fmt.Errorf("the name must be one to five lowercase words joined by dots, "+
			"at most %d characters, such as crawl.finished", maxEventName)
	case strings.HasPrefix(e.name, "wakeshift."):
		return errors.New("names that begin with wakeshift. are reserved")
	case e.description == "":
		return errors.New("it needs a Description")
	}
	return nil
}

// route derives the topic and the filter from the arguments.
func (e *event) route() error {
	segments := []string{"ev", e.name}
	filter := map[string]string{}
	properties, _ := e.arguments.form["properties"].(map[string]any)
	payload, _ := e.payload.form["properties"].(map[string]any)
	required := requiredNames(e.arguments.form)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(map[string]any)
		kind, _ := property["type"].(string)
		if !argumentName.MatchString(name) || name == voucherArgument {
			return fmt.Errorf("the argument name %q must be lowercase letters, digits and _, "+
				"at most 64, begin with a letter, and not be %s", name, voucherArgument)
		}
		if slices.Contains(required, name) {
			if kind != "string" && kind != "integer" && kind != "boolean" {
				return fmt.Errorf("the argument %q is required, so it routes and must be a string, an integer or a boolean", name)
			}
			segments = append(segments, "{"+name+"}")
			continue
		}
		if kind != "string" && kind != "integer" && kind != "number" && kind != "boolean" {
			return fmt.Errorf("the argument %q is optional, so it filters and must be a string, a number or a boolean", name)
		}
		if payload[name] == nil {
			return fmt.Errorf("the argument %q is optional, so it filters on the payload field of its name, "+
				"which the payload lacks", name)
		}
		filter[name] = "{" + name + "}"
	}
	for _, name := range required {
		if properties[name] == nil {
			return fmt.Errorf("the argument %q is required but not in the schema's properties", name)
		}
	}
	e.topic, e.filter = strings.Join(segments, "/"), filter
	return nil
}

func (e *event) entry() manifestEntry {
	return manifestEntry{
		Name: e.name, Title: e.title, Description: e.description,
		Arguments: e.arguments.form, Payload: e.payload.form,
		Topic: e.topic, Filter: e.filter,
		Personal: e.personal, DeleteOnDelivery: e.deleteOnDelivery, Public: e.public,
	}
}

// checkArguments checks arguments that came from outside as JSON. The voucher is
// the core's to check.
func (e *event) checkArguments(arguments map[string]json.RawMessage) (json.RawMessage, error) {
	own := maps.Clone(arguments)
	delete(own, voucherArgument)
	properties, _ := e.arguments.form["properties"].(map[string]any)
	for name := range own {
		if properties[name] == nil {
			return nil, e.badArguments(fmt.Errorf("it has the arguments %q and no others", slices.Sorted(maps.Keys(properties))))
		}
	}
	if own == nil {
		own = map[string]json.RawMessage{}
	}
	data, err := encodeJSON(own)
	if err != nil {
		return nil, e.badArguments(err)
	}
	if err := e.arguments.check(data); err != nil {
		return nil, e.badArguments(err)
	}
	return data, nil
}

// encodeArguments checks arguments the app gives.
func (e *event) encodeArguments(args any) (json.RawMessage, error) {
	data, err := e.arguments.encode(args)
	if err != nil {
		return nil, e.badArguments(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, e.badArguments(err)
	}
	return e.checkArguments(members)
}

func (e *event) badArguments(err error) error {
	return &Error{Status: http.StatusBadRequest, Code: CodeBadArguments, Message: "arguments of " + e.name + ": " + err.Error()}
}

// allows asks the event's Authorize; whatever is not a clear yes is a no.
func (e *event) allows(ctx context.Context, who Subscriber, arguments json.RawMessage) bool {
	if e.authorize == nil {
		return true
	}
	allowed := false
	err := guard("Authorize of "+e.name, func() (err error) {
		allowed, err = e.authorize(ctx, who, arguments)
		return err
	})
	if err != nil {
		hookFailed(e.wake.log, "Authorize failed, so the subscription is refused", err, "event", e.name)
		return false
	}
	return allowed
}

// subscribed calls the event's OnSubscribe.
func (e *event) subscribed(ctx context.Context, who Subscriber, id string, arguments json.RawMessage) {
	if e.onSubscribe == nil {
		return
	}
	err := guard("OnSubscribe of "+e.name, func() error { return e.onSubscribe(ctx, who, id, arguments) })
	if err != nil {
		hookFailed(e.wake.log, "OnSubscribe failed", err, "event", e.name)
	}
}

// typedHooks gives a definition's hooks their arguments in the app's own type.
func typedHooks[Args, Payload any](def EventDef[Args, Payload]) (
	authorize func(context.Context, Subscriber, json.RawMessage) (bool, error),
	onSubscribe func(context.Context, Subscriber, string, json.RawMessage) error,
) {
	if def.Authorize != nil {
		authorize = func(ctx context.Context, who Subscriber, arguments json.RawMessage) (bool, error) {
			var args Args
			if err := json.Unmarshal(arguments, &args); err != nil {
				return false, errors.New("the arguments do not fit their Go type")
			}
			return def.Authorize(ctx, who, args)
		}
	}
	if def.OnSubscribe != nil {
		onSubscribe = func(ctx context.Context, who Subscriber, id string, arguments json.RawMessage) error {
			var args Args
			if err := json.Unmarshal(arguments, &args); err != nil {
				return errors.New("the arguments do not fit their Go type")
			}
			def.OnSubscribe(ctx, Subscription[Args]{Subscriber: who, ID: id, Args: args})
			return nil
		}
	}
	return authorize, onSubscribe
}
