package wake

import (
	"encoding/json"
	"slices"
	"time"
)

// A Subscription joins a conversation to a topic.
type Subscription struct {
	ID           string
	App          string
	Conversation string
	User         string // the conversation's user when it was made; empty is nobody
	Topic        string
	Event        string          // the event's name; empty for a subscription to a plain topic
	Arguments    json.RawMessage // canonical JSON of the event's arguments; nil for a plain topic
	Filter       Filter
	Once         bool // ends with the first occurrence it takes
	Claimed      bool // a native subscription has taken its place: it delivers nothing itself

	// From is the end of the log when the subscription was made: it is owed what came after.
	From Seq
	// Until is the last place it is owed, once it ended; 0 while it lives.
	Until Seq

	CreatedAt time.Time
	ExpiresAt time.Time
	EndedAt   time.Time // zero while it lives
}

// Live reports whether the subscription still takes new occurrences at that time.
func (s Subscription) Live(at time.Time) bool { return s.EndedAt.IsZero() && at.Before(s.ExpiresAt) }

// Takes reports whether the subscription is owed an occurrence: one in the log, or one about to be written (Seq 0). One to a
// plain topic takes whatever is written there, one to an event that event only.
func (s Subscription) Takes(o Occurrence) bool {
	switch {
	case o.Kind == KindErased, s.App != o.App, s.Claimed, s.Event != "" && s.Event != o.Event, !slices.Contains(o.Topics, s.Topic):
		return false
	case o.Seq != 0 && (o.Seq <= s.From || s.Until != 0 && o.Seq > s.Until):
		return false
	case o.Seq == 0 && !s.EndedAt.IsZero(), !o.At.Before(s.ExpiresAt):
		return false
	case o.To != "" && o.To != s.User:
		return false
	}
	return s.Filter.Passes(o.Data)
}

// A Webhook is a native subscription: a principal's endpoint that receives an event's occurrences by HTTP.
type Webhook struct {
	ID        string // deterministic over principal, URL, event and arguments
	App       string
	Principal string // who it belongs to: the app's user, or the voucher that stands for one
	User      string // the app's user; empty when it came by a voucher of nobody
	URL       string
	Event     string
	Arguments json.RawMessage // canonical JSON
	Topic     string
	Filter    Filter
	Dialect   string // the dialect of the client that subscribed
	From      Seq
	CreatedAt time.Time
	ExpiresAt time.Time

	// Secret signs deliveries; Former signs too until FormerUntil, so that a receiver may rotate. Both are sealed.
	Secret      []byte
	Former      []byte
	FormerUntil time.Time

	LastDeliveryAt time.Time
	LastError      string // a category, empty after a success
	FailedSince    time.Time
	Suspended      bool
}

// UserPrincipal is the Principal of a webhook that one of the app's users subscribed.
func UserPrincipal(user string) string { return "user/" + user }

// VoucherPrincipal is the Principal of a webhook that nobody but the voucher of the subscription with that id stands for.
func VoucherPrincipal(subscription string) string { return "voucher/" + subscription }

// Live reports whether the webhook still takes new occurrences at that time.
func (w Webhook) Live(at time.Time) bool { return at.Before(w.ExpiresAt) }

// Takes reports whether the webhook is owed an occurrence; see [Subscription.Takes].
func (w Webhook) Takes(o Occurrence) bool {
	switch {
	case o.Kind == KindErased, w.App != o.App, w.Event != o.Event, !slices.Contains(o.Topics, w.Topic):
		return false
	case o.Seq != 0 && o.Seq <= w.From, !o.At.Before(w.ExpiresAt):
		return false
	case o.To != "" && o.To != w.User:
		return false
	}
	return w.Filter.Passes(o.Data)
}

// A Delivery is one occurrence on its way to one webhook.
type Delivery struct {
	Webhook  string
	Seq      Seq
	Attempts int       // made so far
	NextAt   time.Time // when it is due, or, while an attempt runs, when its claim lapses
	Error    string    // category of the last failure
	// Claim grows each time the delivery is claimed. What is recorded of an earlier claim changes nothing: whoever has it was
	// too slow, and another has taken over.
	Claim int64
}
