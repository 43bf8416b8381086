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
	// ErrMany means that there are more than are listed.
	ErrMany = errors.New("too many to list")
	// ErrFull means that the disk or the database's quota is full; nothing of the transaction was kept.
	ErrFull = errors.New("no space left for the database")
	// ErrReadOnly means that the database or its directory cannot be written.
	ErrReadOnly = errors.New("the database cannot be written")
	// ErrUnavailable means that the database cannot be reached or does not answer in time. Trying again later is worth it.
	ErrUnavailable = errors.New("the database cannot be reached")
	// ErrLocked means that another process has the database.
	ErrLocked = errors.New("another process has the database open")
	// ErrSyncFailed means that the disk did not confirm a write. What was written last may be lost, which is known only
	// after a restart; until then every Update and View returns this.
	ErrSyncFailed = errors.New("the disk did not confirm a write")
	// ErrCorrupt means that the database's content is damaged.
	ErrCorrupt = errors.New("the database is damaged")
)

// MostListed is about how many subscriptions to one topic are listed: of more, those who take something are counted, so that a
// topic of a million costs neither the memory for them nor the writer's time.
const MostListed = 10_000

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

	// Size is about how many bytes the database takes now. Room that removed rows have left does not count.
	Size(ctx context.Context) (int64, error)

	// Check looks for damage: what the database itself finds wrong, and what contradicts the rules that the store keeps. It
	// reads everything, from one snapshot, without holding up other calls. It returns at most [MaxProblems]; none means
	// that all is well. The error says that it could not look.
	Check(ctx context.Context) ([]Problem, error)

	// Scrub returns once what was deleted or replaced before the call is in none of the database's files any more. It may hold
	// up other calls, for as long as it takes to bring what was written last into the database. Calls at once share the work.
	Scrub(ctx context.Context) error

	// Close waits for running transactions, and releases the database. It is safe to call twice.
	Close() error
}

// MaxProblems is how many problems Check returns at most.
const MaxProblems = 100

// A Problem is something wrong that Check found. Neither field holds a payload, a user or a credential.
type Problem struct {
	Where string `json:"where"` // a table, or what stands for one
	What  string `json:"what"`
}

// A Copier is a Store that can write a whole copy of itself while it is used. One whose database is a server's is none:
// the server has tools for it.
type Copier interface {
	// Copy writes what was committed before the call, and is not removed, to a new file at that path, for its owner alone,
	// and returns when it is on disk. When it fails there is no file. It holds up no other call. The end of ctx ends it.
	Copy(ctx context.Context, path string) error
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

// How many attempts at deliveries are kept: of all webhooks about so many, and of one webhook so many, lest it leave no room for
// those of others.
const (
	MostAttempts          = 250_000
	MostAttemptsOfWebhook = 2_500
)

// An AttemptQuery says which attempts are wanted. Zero fields set no bound, but App is required.
type AttemptQuery struct {
	App     string
	Webhook string
	Seq     wake.Seq  // only those to deliver the occurrence there
	Before  int64     // only those with a lower number: what comes after the last one listed
	Since   time.Time // only those from then or later
	Until   time.Time // only those from before
	Failed  bool      // only those that delivered nothing
	Limit   int       // at most so many; 0 is none
}

// A ClaimQuery says which deliveries are taken.
type ClaimQuery struct {
	Now, Lease  time.Time
	Limit       int      // at most so many
	PerWebhook  int      // of one webhook at most so many, together with those that are claimed
	ExceptHosts []string // none of webhooks at these
}

// Erasures count what was erased ([Tx.Owe], [Tx.Forget]) since the database was made, and how much of that is known to be in
// no file any more: Made and Scrubbed are equal when there is nothing to scrub.
type Erasures struct{ Made, Scrubbed int64 }

// A Person is a user of an app.
type Person struct{ App, User string }

// Forgotten is what one step of [Tx.Forget] did.
type Forgotten struct {
	Removed       int      // things it removed
	Conversations []string // ids of the conversations among them
	More          bool     // there may be more to remove
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
	// do not change it. ErrMany when a topic has more than about [MostListed].
	SubscriptionsTo(app string, topics []string) ([]wake.Subscription, error)
	// SubscriptionsOfUser, SubscriptionsOfEvent and SubscriptionsOfApp list the live ones.
	SubscriptionsOfUser(app, user string) ([]wake.Subscription, error)
	SubscriptionsOfEvent(app, event string) ([]wake.Subscription, error)
	SubscriptionsOfApp(app string) ([]wake.Subscription, error)
	// ExpiredSubscriptions lists live ones whose ExpiresAt is not after the time, the first to expire first, at most limit.
	ExpiredSubscriptions(at time.Time, limit int) ([]wake.Subscription, error)

	// CountSubscriptionsTo counts the app's subscriptions to a topic by its name (no event) that are live at the time.
	CountSubscriptionsTo(app, topic string, at time.Time) (int, error)
	// CountTakers counts, of the app's live subscriptions to any of the topics, those that take whatever is written there
	// under that event (empty: none) at that time, to that user (empty: everybody): they are to the topic by its name or to the
	// event, have no filter, are not once, and no native one has taken their place.
	CountTakers(app string, topics []string, event, to string, at time.Time) (int, error)
	// PickySubscriptionsTo lists the live ones to a topic that have a filter or are once, by their ids, those after that id, at
	// most limit.
	PickySubscriptionsTo(app, topic, after string, limit int) ([]wake.Subscription, error)
	// SomeSubscriptionsTo lists, of the live ones to a topic by its name, the first, at most limit, expired ones too.
	SomeSubscriptionsTo(app, topic string, limit int) ([]wake.Subscription, error)

	// Replay is the replay of a subscription. ReplaysOf lists those of a conversation that are not finished, ReplaysEver all
	// of subscriptions that were not pruned.
	Replay(subscription string) (wake.Replay, error)
	ReplaysOf(conversation string) ([]wake.Replay, error)
	ReplaysEver(conversation string) ([]wake.Replay, error)

	Workspace(id string) (wake.Workspace, error)
	WorkspaceOf(app, user string) (wake.Workspace, error)
	CountWorkspaces(app string) (int, error)
	Grant(workspace, agent string) (wake.Grant, error)
	CountGrants(workspace string) (int, error)

	// CountSubscriptionsOfUser, CountSubscriptionsOfApp and CountConversations count what is live, and what there is.
	CountSubscriptionsOfUser(app, user string) (int, error)
	CountSubscriptionsOfApp(app string) (int, error)
	CountConversations(app string) (int, error)
	// SubscriptionsBehind lists the app's live subscriptions to the topic that were made before the place and whose
	// conversation has not reached it, at most limit. Of a topic with more than [MostListed] it looks at so many only.
	SubscriptionsBehind(app, topic string, seq wake.Seq, limit int) ([]wake.Subscription, error)

	Webhook(id string) (wake.Webhook, error)
	// WebhooksTo lists the app's webhooks on any of the topics, expired ones too. The slice may be shared. This and the other
	// lists of webhooks are without those that have ended.
	WebhooksTo(app string, topics []string) ([]wake.Webhook, error)
	WebhooksOfUser(app, user string) ([]wake.Webhook, error)
	WebhooksOfEvent(app, event string) ([]wake.Webhook, error)
	WebhooksOfApp(app string) ([]wake.Webhook, error)
	// VerifiedAt is when the principal's endpoint at that URL last proved itself, by any of its webhooks, expired and ended ones
	// too; the zero time when it never did.
	VerifiedAt(app, principal, url string) (time.Time, error)
	// NextDelivery is when the earliest delivery that can be claimed is due; the zero time when there is none. Those of
	// suspended webhooks cannot, nor can those of webhooks at the hosts given.
	NextDelivery(exceptHosts []string) (time.Time, error)
	// Watermark is the place up to which the webhook has received or been denied all it is owed: that before the lowest place
	// queued for it, or the log's head.
	Watermark(webhook string) (wake.Seq, error)
	// Overfull lists webhooks with more than most occurrences queued, at most limit. It may read the whole queue.
	Overfull(most, limit int) (webhooks []string, err error)
	// Health returns the zero one, with its Webhook, when there was no attempt yet.
	Health(webhook string) (wake.Health, error)
	// Attempts lists what was tried, the newest first.
	Attempts(q AttemptQuery) ([]wake.Attempt, error)

	// PublishURL returns revoked ones too; CountPublishURLs counts the app's that are not.
	PublishURL(id string) (wake.PublishURL, error)
	CountPublishURLs(app string) (int, error)

	Log() (Log, error)
	Occurrence(seq wake.Seq) (wake.Occurrence, error)
	// PlaceBefore is the last place before what happened at the time or later; the horizon when nothing that is kept happened
	// before. Times are taken to grow with places: where they do not, it is off by as much as they are.
	PlaceBefore(at time.Time) (wake.Seq, error)
	// OccurrenceOf finds the occurrence that carries the app's own id, among those of one event (empty: of publishes).
	OccurrenceOf(app, event, key string) (wake.Occurrence, error)
	// Occurrences lists the app's occurrences on any of the topics with a place after the given one, each once, in
	// order, at most limit. What was committed is never skipped: a place becomes visible in commit order.
	Occurrences(app string, topics []string, after wake.Seq, limit int) ([]wake.Occurrence, error)
	// OldestOccurrences lists the first ones in the log, of all apps, as far as they are from before the time, at most limit.
	OldestOccurrences(before time.Time, limit int) ([]wake.Occurrence, error)

	Erasures() (Erasures, error)
	// Forgetting lists whom Forget has begun and not finished to forget.
	Forgetting() ([]Person, error)
}

// A Tx reads and writes within one transaction, and sees its own writes. A write that names an app, a conversation or a
// webhook which is not there returns ErrNotFound, unless it says that it changes nothing then.
type Tx interface {
	Reader

	// CreateApp and CreateKey return ErrExists when the id is taken.
	CreateApp(app wake.App) error
	// DeleteApp removes the app and everything that is its: keys, manifest, conversations, subscriptions, webhooks,
	// deliveries, publish URLs, workspaces, occurrences. ErrNotFound when there is none.
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
	// Hand reserves what waits for a conversation for the one call whose result it is to ride on, until the lease ends or
	// Handed is called. It reports false, and changes nothing, while it is reserved or when there is no such conversation.
	Hand(conversation string, now, lease time.Time) (bool, error)
	// Handed ends the reservation with that lease; it changes nothing when there is another or none.
	Handed(conversation string, lease time.Time) error

	// PutSubscription creates or replaces.
	PutSubscription(s wake.Subscription) error
	// EndSubscription ends a live one, at a time that is not zero: it is owed nothing after until. It reports whether it was
	// live.
	EndSubscription(id string, until wake.Seq, at time.Time) (bool, error)

	// PutReplay keeps a replay, of a subscription that has had none (else ErrExists).
	PutReplay(r wake.Replay) error
	// AdvanceReplay moves a replay's After forward. It changes nothing when the place is not after it, or there is no such
	// replay.
	AdvanceReplay(subscription string, to wake.Seq) error

	// CreateWorkspace and CreateGrant return ErrExists when the id is taken, or the app's user, or the workspace's agent, has one.
	CreateWorkspace(w wake.Workspace) error
	CreateGrant(g wake.Grant) error
	// DeleteWorkspace removes a workspace and its grants, and reports whether it was there.
	DeleteWorkspace(id string) (bool, error)

	// PutWebhook creates or replaces. One that has ended and is put as live begins anew: its last notice and its health go.
	// DeleteWebhook removes it with its deliveries, health and attempts, and reports whether it was there.
	PutWebhook(w wake.Webhook) error
	DeleteWebhook(id string) (bool, error)
	// EndWebhook ends a live or expired one, at a time that is not zero: what is queued for it goes, what is fleeting it is owed
	// no more, it is suspended no more, and a notice that it has ended is queued, due at that time. It reports whether it did.
	EndWebhook(id, reason string, at time.Time) (bool, error)
	// PutHealth creates or replaces; RecordAttempt keeps one more, and numbers it; of more than [MostAttemptsOfWebhook] of the
	// webhook's the first goes. Both change nothing without the webhook.
	PutHealth(h wake.Health) error
	RecordAttempt(a wake.Attempt) error
	// QueueDelivery adds one; a second one of the same webhook, place and kind changes nothing. What is fleeting at the place
	// (see Owe) the webhook is owed too.
	QueueDelivery(d wake.Delivery) error
	// RequeueDelivery does the same, but one that is queued already starts anew: without attempts, and due at NextAt. One that
	// is under way by then is left alone.
	RequeueDelivery(d wake.Delivery) error
	// ClaimDeliveries takes due deliveries, earliest first. It raises each one's Claim and makes it due again at the lease
	// unless it is finished or retried before. Deliveries of suspended webhooks are not due.
	ClaimDeliveries(q ClaimQuery) ([]wake.Delivery, error)
	// RetryDelivery stores the delivery's attempts, next time and error, and ends its claim; FinishDelivery removes it. Both
	// report whether they did: they change nothing when it is no longer there or was claimed again since.
	RetryDelivery(d wake.Delivery) (bool, error)
	FinishDelivery(d wake.Delivery) (bool, error)
	// TrimDeliveries drops the lowest places of what is queued for a webhook, until most are left, and returns how many. When it
	// drops any it queues a gap notice at the webhook's watermark, due at once, in place of an earlier one that is not under way.
	TrimDeliveries(webhook string, most int) (dropped int, err error)

	// PutPublishURL creates or replaces.
	PutPublishURL(u wake.PublishURL) error

	// Append writes an occurrence at the next place, which it returns. ErrExists when its Key is taken for its app and event.
	// A topic is not empty and holds no line feed.
	Append(o wake.Occurrence) (wake.Seq, error)

	// Owe makes the occurrence at a place fleeting: once nobody of these is owed it any more, the same transaction erases its
	// content ([wake.Occurrence.Erased]). A subscription is owed it until its conversation's position has reached the place,
	// or until the subscription ends, is claimed or is removed: one that has ended already, until the former or until it is
	// removed. A webhook is owed it until its delivery of the place is finished or the webhook is removed. With neither
	// nothing is changed. The place is one that Append gave in this transaction.
	Owe(seq wake.Seq, subscriptions []wake.Subscription, webhooks []wake.Webhook) error
	// NoteScrubbed says that the first so many erasures are in no file any more.
	NoteScrubbed(erasures int64) error

	// Forget removes everything kept of one of the app's users: conversations with all they have and were told, webhooks,
	// those of vouchers of the user's subscriptions too, occurrences to the user or on the user's private topics
	// ([wake.PrivateTopicPrefix]), publish URLs for either, the user's workspace. What was published to other topics as well stays there. It does a
	// step of about limit removals; whom it has not finished, Forgetting lists. An empty user is nobody: nothing is removed.
	Forget(app, user string, limit int) (Forgotten, error)

	// PruneLog removes the first occurrences in the log, as far as they are from before the time, at most limit, as Prune
	// does, and returns how many.
	PruneLog(before time.Time, limit int) (removed int, err error)

	// Prune removes occurrences from before the time, with deliveries of them, and raises the horizon; subscriptions that
	// ended before it; webhooks that expired or ended before it, with their deliveries; attempts from before it, and of more than
	// [MostAttempts] the first; and conversations without subscriptions that were not seen since. Webhooks whose deliveries went
	// with the log are told of the gap, as by TrimDeliveries. It does a step, of at most limit rows of each, and reports whether
	// there may be more.
	Prune(before time.Time, limit int) (more bool, err error)
}
