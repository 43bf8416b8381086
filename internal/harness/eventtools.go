package harness

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rouse-dev/rouse/internal/wake"
)

// The tools by which an agent subscribes itself, whose client does not speak MCP Events. The names are those of the public SDK.
const (
	SubscribeEvents   = "subscribe_events"
	UnsubscribeEvents = "unsubscribe_events"
	ListSubscriptions = "list_subscriptions"
)

// How many events a description of a tool shows, and the answer to list_subscriptions, and how long they may be together. What every
// agent reads at its start is kept short.
const (
	describedEvents, describedBytes = 30, 4 << 10
	listedEvents, listedBytes       = 100, 32 << 10
)

// A Tool is one of these tools as MCP describes it.
type Tool struct {
	Name        string
	Title       string
	Description string
	InputSchema json.RawMessage
	ReadOnly    bool
}

// An Offer is an event that an agent may subscribe to.
type Offer struct {
	Name        string
	Description string // one line of a few hundred characters at most
	Arguments   string // JSON Schema
}

// A Holding is a subscription that a caller has.
type Holding struct {
	ID, What  string // What: an event, or a topic in words
	Arguments string // JSON; empty of a topic
	Once      bool
	Where     string // where its events go, when that is not the calling conversation
}

// AnotherConversation is the Where of a subscription that another conversation of the user made.
const AnotherConversation = "in another conversation"

// AtWebhook is the Where of a webhook at that host.
func AtWebhook(host string) string { return "by a webhook at " + host }

// OffersEventTools reports whether a caller is offered the tools. Whoever subscribes by MCP Events is not: a client that declares it,
// and ChatGPT for a user who is signed in. For nobody ChatGPT needs the voucher that the tools give it.
func OffersEventTools(call wake.Call) bool {
	if Recognise(call).Path == PathVoucher {
		return call.User == ""
	}
	return !call.DeclaresExtension(EventsExtension)
}

// What the tools' arguments are, as JSON Schema.
const (
	eventArgument = `"event":{"type":"string","description":"The event's name."},` +
		`"arguments":{"type":"object","description":"The event's arguments, by its own schema."}`
	onceArgument  = `"once":{"type":"boolean","description":"End the subscription with its first occurrence."}`
	idArgument    = `"id":{"type":"string","description":"A subscription's id, in place of event and arguments."}`
	afterArgument = `"after":{"type":"string","description":"List the events on offer whose names come after this one."}`
)

// EventTools describes the tools of an app that has these events on offer.
func EventTools(app string, offers []Offer) []Tool {
	schema := func(required string, properties ...string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `}` + required + `,"additionalProperties":false}`)
	}
	return []Tool{{
		Name: SubscribeEvents, Title: "Subscribe to an event",
		Description: fmt.Sprintf("Subscribe this conversation to an event of the app %s. You are then woken, or told with a later result, when it "+
			"happens, even hours later. Subscribing again renews. %s\n\n%s", app, framing(app), offered(offers, describedEvents, describedBytes)),
		InputSchema: schema(`,"required":["event"]`, eventArgument, onceArgument),
	}, {
		Name: UnsubscribeEvents, Title: "End a subscription to an event",
		Description: fmt.Sprintf("End a subscription to an event of the app %s, by the id that %s or %s gave, or this conversation's by event and arguments.",
			app, SubscribeEvents, ListSubscriptions),
		InputSchema: schema("", eventArgument, idArgument),
	}, {
		Name: ListSubscriptions, Title: "List subscriptions to events",
		Description: fmt.Sprintf("List what this conversation and its user are subscribed to in the app %s, and all events there are to subscribe to.", app),
		InputSchema: schema("", afterArgument),
		ReadOnly:    true,
	}}
}

// offered lists events, as many as fit.
func offered(offers []Offer, most, bytes int) string {
	if len(offers) == 0 {
		return "No events are on offer."
	}
	var b strings.Builder
	b.WriteString("Events on offer, each with the JSON Schema of its arguments:")
	for i, o := range offers {
		line := fmt.Sprintf("\n- %s: %s ", o.Name, o.Description)
		if arguments := o.Arguments; len(line)+len(arguments) <= bytes/2 {
			line += arguments
		} else {
			line += "(its arguments are too many to show here)"
		}
		if i > 0 && (i == most || b.Len()+len(line) > bytes) {
			fmt.Fprintf(&b, "\n%s on offer: %s lists them, with after %q.", plural(len(offers)-i, "more is", "more are"), ListSubscriptions, offers[i-1].Name)
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// SubscribedText answers subscribe_events; what is the event with its arguments.
func SubscribedText(what, id string, created bool) string {
	if created {
		return fmt.Sprintf("Subscribed to %s. The subscription's id is %s.", what, id)
	}
	return fmt.Sprintf("Already subscribed to %s: the subscription, %s, is renewed.", what, id)
}

// UnsubscribedText answers unsubscribe_events; what is an event with its arguments, or a subscription's id.
func UnsubscribedText(what string, ended bool) string {
	if ended {
		return fmt.Sprintf("Stopped: %s.", what)
	}
	return fmt.Sprintf("Nothing to stop: there is no such subscription of yours, %s. %s shows those there are.", what, ListSubscriptions)
}

// HoldingsText answers list_subscriptions: what the conversation has, what its user has elsewhere, how many more there are of both,
// and what is on offer after a name.
func HoldingsText(here, elsewhere []Holding, more int, offers []Offer) string {
	var b strings.Builder
	if len(here) == 0 {
		b.WriteString("This conversation has no subscriptions. (If it should, pass the session_key that an earlier result gave you.)")
	} else {
		b.WriteString("This conversation is subscribed to:")
		list(&b, here)
	}
	if len(elsewhere) > 0 {
		b.WriteString("\n\nYour user is also subscribed to:")
		list(&b, elsewhere)
	}
	if more > 0 {
		fmt.Fprintf(&b, "\nand %d more.", more)
	}
	return b.String() + "\n\n" + offered(offers, listedEvents, listedBytes)
}

func list(b *strings.Builder, holdings []Holding) {
	for _, h := range holdings {
		fmt.Fprintf(b, "\n- %s: id %s", strings.TrimSpace(h.What+" "+h.Arguments), h.ID)
		if h.Where != "" {
			fmt.Fprintf(b, ", %s", h.Where)
		}
		if h.Once {
			b.WriteString(", ends with its first occurrence")
		}
	}
}
