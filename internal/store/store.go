package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rouse-dev/rouse/internal/wake"
)

// Errors a caller must tell apart. Anything else is a fault of the database and worth a log line.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("already exists")
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("store is closed")
	// ErrFull means that the disk or the database's quota is full; nothing of the transaction was kept.
	ErrFull = errors.New("no space left for the database")
	// ErrReadOnly means that the database or its directory cannot be written.
	ErrReadOnly = errors.New("the database cannot be written")
	// ErrLocked means that another process has the database.
	ErrLocked = errors.New("another process has the database open")
	// ErrCorrupt means that the database's content is damaged.
	ErrCorrupt = errors.New("the database is damaged")
)

// A Store keeps everything the core knows. All methods are safe for concurrent use. The functions given to View and Update
// call no method of the Store: they could wait for themselves. A panic of theirs comes out of the method.
//
// Times are kept to the microsecond and come back in UTC, the zero time as such. Empty JSON, filters, lists and byte strings
// come back nil. JSON comes back byte for byte as it was given, but for space within a filter's values.
type Store interface {
	// View runs f over one consistent snapshot, which holds all that was committed before the call. f must not keep the
	// Reader. The end of ctx ends the wait for a connection, not f.
	View(ctx context.Context, f func(Reader) error) error

	// Update runs f as one transaction and returns once its changes are durable: after fsync, on disk. When f or the
	// commit fails nothing of it is kept, and the error is returned. f may run more than once, one run of it being kept:
	// it assigns captured variables afresh each time and has no other effect. Concurrent updates may share a commit. f
	// must not keep the Tx. Once f has begun, the end of ctx does not undo it.
	Update(ctx context.Context, f func(Tx) error) error

	// Spend records that the id of that scope is used up until the given time and reports whether it was fresh: of any
	// number of calls with one id, at once or later, exactly one is told true. It outlives a restart, but may be forgotten
	// by a crash within a moment of its call; ids whose time is over may be forgotten.
	Spend(ctx context.Context, scope, id string, until time.Time) (fresh bool, err error)

	// Close waits for running transactions, and releases the database. It is safe to call twice.
	Close() error
}

// A Manifest is an app's manifest as it was put.
type Manifest struct {
	Version int64           // grows with each put and is no other manifest's, of no app ever; 0 when none was put
	Body    json.RawMessage // as sent, compact; nil when none was ever put
}

// Log is the state of the log.
type Log struct {
	Epoch   string   // made with the database: a recreated log has another one; lower-case base32, 4 characters
	Head    wake.Seq // the last place used
	Horizon wake.Seq // everything up to here may have been removed by retention
}

// A Reader reads one snapshot. A method for one thing returns ErrNotFound when it is not there; lists are empty then.
// Lists are in the order of creation unless a method says otherwise.
type Reader interface {
	App(id string) (wake.App, error)
	Apps() ([]wake.App, error)
	Key(id string) (wake.Key, error)
	Keys(app string) ([]wake.Key, error)
	// Manifest returns the app's manifest, the zero one when none was put.
	Manifest(app string) (Manifest, error)
	// ManifestVersion is the version alone, 0 when none was put: cheap enough for each emit.
	ManifestVersion(app string) (int64, error)

	Conversation(id string) (wake.Conversation, error)
	// ConversationOf finds a conversation by the harness's own thread id, the first made should there be several. Kind is
	// wake.KindOf; user may be empty; without a thread there is none.
	ConversationOf(app, kind, user, thread string) (wake.Conversation, error)

	Subscription(id string) (wake.Subscription, error)
	// SubscriptionOf finds the live subscription of a conversation to an event with these canonical arguments, or to a
	// plain topic (event and arguments empty). An expired one that was not ended yet counts as live.
	SubscriptionOf(conversation, topic, event string, arguments json.RawMessage) (wake.Subscription, error)
	// SubscriptionsOf lists what a conversation is owed by: its live subscriptions, and ended ones whose Until lies after
	// its Position.
	SubscriptionsOf(conversation string) ([]wake.Subscription, error)
	// SubscriptionsEver lists all of a conversation's that were not pruned, ended and settled ones too.
	SubscriptionsEver(conversation string) ([]wake.Subscription, error)
	// CountSubscriptions counts a conversation's live ones.
	CountSubscriptions(conversation string) (int, error)
	// SubscriptionsTo lists the app's live subscriptions to any of the topics, each once. The slice may be shared: callers
	// do not change it.
	SubscriptionsTo(app string, topics []string) ([]wake.Subscription, error)
	// SubscriptionsOfUser, SubscriptionsOfEvent and SubscriptionsOfApp list the live ones.
	SubscriptionsOfUser(app, user string) ([]wake.Subscription, error)
	SubscriptionsOfEvent(app, event string) ([]wake.Subscription, error)
	SubscriptionsOfApp(app string) ([]wake.Subscription, error)
	// ExpiredSubscriptions lists live ones whose ExpiresAt is not after the time, the first to expire first, at most limit.
	ExpiredSubscriptions(at time.Time, limit int) ([]wake.Subscription, error)

	Webhook(id string) (wake.Webhook, error)
	// WebhooksTo lists the app's webhooks on any of the topics, expired ones too. The slice may be shared.
	WebhooksTo(app string, topics []string) ([]wake.Webhook, error)
	WebhooksOfUser(app, user string) ([]wake.Webhook, error)
	WebhooksOfEvent(app, event string) ([]wake.Webhook, error)
	WebhooksOfApp(app string) ([]wake.Webhook, error)
	// NextDelivery is when the earliest delivery that can be claimed is due; the zero time when there is none. Those of
	// suspended webhooks cannot.
	NextDelivery() (time.Time, error)

	// PublishURL returns revoked ones too; CountPublishURLs counts the app's that are not.
	PublishURL(id string) (wake.PublishURL, error)
	CountPublishURLs(app string) (int, error)

	Log() (Log, error)
	Occurrence(seq wake.Seq) (wake.Occurrence, error)
	// OccurrenceOf finds the occurrence that carries the app's own id, among those of one event (empty: of publishes).
	OccurrenceOf(app, event, key string) (wake.Occurrence, error)
	// Occurrences lists the app's occurrences on any of the topics with a place after the given one, each once, in
	// order, at most limit. What was committed is never skipped: a place becomes visible in commit order.
	Occurrences(app string, topics []string, after wake.Seq, limit int) ([]wake.Occurrence, error)
}

// A Tx reads and writes within one transaction, and sees its own writes. A write that names an app, a conversation or a
// webhook which is not there returns ErrNotFound, unless it says that it changes nothing then.
type Tx interface {
	Reader

	// CreateApp and CreateKey return ErrExists when the id is taken.
	CreateApp(app wake.App) error
	// DeleteApp removes the app and everything that is its: keys, manifest, conversations, subscriptions, webhooks,
	// deliveries, publish URLs, occurrences. ErrNotFound when there is none.
	DeleteApp(id string) error
	CreateKey(key wake.Key) error
	// RevokeKey returns ErrNotFound when the app has no such key; revoking again changes nothing.
	RevokeKey(app, id string, at time.Time) error
	// PutManifest keeps the body as the app's manifest and returns its version.
	PutManifest(app string, body json.RawMessage) (version int64, err error)

	// PutConversation creates or replaces. Position is only set at creation.
	PutConversation(c wake.Conversation) error
	// Advance moves a conversation's position forward. It changes nothing when the place is not after it, or the
	// conversation is no longer there.
	Advance(conversation string, to wake.Seq) error

	// PutSubscription creates or replaces.
	PutSubscription(s wake.Subscription) error
	// EndSubscription ends a live one, at a time that is not zero: it is owed nothing after until. It reports whether it was
	// live.
	EndSubscription(id string, until wake.Seq, at time.Time) (bool, error)

	// PutWebhook creates or replaces; DeleteWebhook removes it and its deliveries, and reports whether it was there.
	PutWebhook(w wake.Webhook) error
	DeleteWebhook(id string) (bool, error)
	// QueueDelivery adds one; a second one of the same webhook and place changes nothing.
	QueueDelivery(d wake.Delivery) error
	// ClaimDeliveries takes due deliveries, earliest first, at most limit and at most perWebhook of one webhook, and makes
	// each due again at lease unless it is finished or retried before. Deliveries of suspended webhooks are not due.
	ClaimDeliveries(now, lease time.Time, limit, perWebhook int) ([]wake.Delivery, error)
	// RetryDelivery stores the delivery's attempts, next time and error; FinishDelivery removes it. Both change nothing
	// when it is no longer there.
	RetryDelivery(d wake.Delivery) error
	FinishDelivery(webhook string, seq wake.Seq) error

	// PutPublishURL creates or replaces.
	PutPublishURL(u wake.PublishURL) error

	// Append writes an occurrence at the next place, which it returns. ErrExists when its Key is taken for its app and event.
	// A topic is not empty and holds no line feed.
	Append(o wake.Occurrence) (wake.Seq, error)

	// Prune removes occurrences from before the time, with deliveries of them, and raises the horizon; subscriptions that
	// ended before it; webhooks that expired before it, with their deliveries; and conversations without subscriptions that
	// were not seen since. It does a step, of at most limit rows of each, and reports whether there may be more.
	Prune(before time.Time, limit int) (more bool, err error)
}
