package wake

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Webhook is a native subscription: a principal's endpoint that receives an event's occurrences by HTTP.
type Webhook struct {
	ID        string // deterministic over principal, URL, event and arguments
	App       string
	Principal string // who it belongs to: the app's user, or the voucher that stands for one
	User      string // the app's user; empty when it came by a voucher of nobody
	URL       string
	Host      string // host:port of the URL in canonical form: endpoints of one host share limits
	Event     string
	Arguments json.RawMessage // canonical JSON
	Topic     string
	Filter    Filter
	Dialect   string // the dialect of the client that subscribed
	From      Seq
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never

	// Secret signs deliveries; Former signs too until FormerUntil, so that a receiver may rotate. Both are sealed.
	Secret      []byte
	Former      []byte
	FormerUntil time.Time

	// VerifiedAt is when the endpoint last proved that it wants deliveries; zero when that is known otherwise.
	VerifiedAt time.Time

	Suspended   bool // deliveries wait
	SuspendedAt time.Time

	// EndedAt is not zero once it has ended: it takes nothing more, is in no list of webhooks, and goes once its last notice is
	// delivered. EndReason is a word the core chose, for that notice.
	EndedAt   time.Time
	EndReason string
}

// ShownHost is what may be shown of a webhook's address, its host and port; the rest is often a credential. It is empty for what is
// no address.
func ShownHost(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(parsed.Host)
}

// UserPrincipal is the Principal of a webhook that one of the app's users subscribed.
func UserPrincipal(user string) string { return "user/" + user }

// VoucherPrincipal is the Principal of a webhook that nobody but the voucher of the subscription with that id stands for.
func VoucherPrincipal(subscription string) string { return "voucher/" + subscription }

// Live reports whether the webhook still takes new occurrences at that time.
func (w Webhook) Live(at time.Time) bool { return w.EndedAt.IsZero() && !w.expired(at) }

func (w Webhook) expired(at time.Time) bool { return !w.ExpiresAt.IsZero() && !at.Before(w.ExpiresAt) }

// Takes reports whether the webhook is owed an occurrence; see [Subscription.Takes].
func (w Webhook) Takes(o Occurrence) bool {
	switch {
	case o.Kind == KindErased, w.App != o.App, w.Event != o.Event, !slices.Contains(o.Topics, w.Topic):
		return false
	case o.Seq != 0 && o.Seq <= w.From, !w.Live(o.At):
		return false
	case o.To != "" && o.To != w.User:
		return false
	}
	return w.Filter.Passes(o.Data)
}

// A DeliveryKind is what a delivery brings.
type DeliveryKind string

// The kinds of deliveries. All but the first are notices: they bring no occurrence, their place only says when they were queued.
const (
	DeliveryOccurrence DeliveryKind = ""
	DeliveryGap        DeliveryKind = "gap"        // some of what the webhook was owed will not come
	DeliveryTerminated DeliveryKind = "terminated" // the webhook has ended
)

// A Delivery is one occurrence, or one notice, on its way to one webhook.
type Delivery struct {
	Webhook  string
	Seq      Seq // of a notice: the log's head when it was queued, of a gap the webhook's watermark then
	Kind     DeliveryKind
	Attempts int       // made so far
	NextAt   time.Time // when it is due, or, while an attempt runs, when its claim lapses
	Error    string    // category of the last failure
	// Claim grows each time the delivery is claimed. What is recorded of an earlier claim changes nothing: whoever has it was
	// too slow, and another has taken over.
	Claim int64
	// Watermark is an occurrence's: everything the webhook is owed up to there is received or given up once this delivery is. The
	// first claim sets it, retries keep it. It is Seq, or the place before the lowest one that is queued when that is lower.
	Watermark Seq
}

// Health is how deliveries to a webhook went lately. It is kept apart from the webhook, which is in lists that many share and
// does not change with each attempt.
type Health struct {
	Webhook        string
	LastDeliveryAt time.Time
	LastError      string    // a category, empty after a success
	FailedSince    time.Time // zero after a success
	ThrottledUntil time.Time // when the endpoint said that it takes more

	// Attempts and Failures count since WindowAt.
	WindowAt           time.Time
	Attempts, Failures int
}

// How an attempt came out.
const (
	AttemptDelivered = "delivered"
	AttemptRetrying  = "retrying"
	AttemptAbandoned = "abandoned"
)

// An Attempt is one try at a delivery, kept for people to look at. It holds no payload, no URL and nothing of the answer but its
// status.
type Attempt struct {
	N       int64 // grows with each one that is kept
	Webhook string
	Seq     Seq
	Kind    DeliveryKind
	Number  int // 1 is the first of its delivery
	At      time.Time
	Took    time.Duration // kept to the microsecond
	Status  int           // of the HTTP answer; 0 when there was none
	Reason  string        // category of a failure
	Outcome string        // AttemptDelivered, AttemptRetrying or AttemptAbandoned
	NextAt  time.Time     // when it is tried again; zero when it is not
}
