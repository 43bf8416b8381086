package core

import (
	"context"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/quota"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Limits bound what one app, and one of its users, may do and keep. 0 is no limit.
type Limits struct {
	AppRequests       int   // a second, of one app with all its publish URLs; twice as many at once
	AppBytes          int64 // of arguments, texts and payloads that an app may have kept in a day
	AppSubscriptions  int   // live ones of all its conversations
	AppConversations  int
	AppStreams        int // native streams of the app that are open at one node
	UserRequests      int // a second, in the name of one user of an app; ten times as many at once
	UserSubscriptions int // live ones of all conversations of one user of an app
	UserWebhooks      int // live ones of one principal
	UserStreams       int // native streams of one principal that are open at one node
}

// DefaultLimits are those of a core whose operator said nothing.
var DefaultLimits = Limits{
	AppRequests: 20_000, AppSubscriptions: 5_000_000, AppConversations: 5_000_000, AppStreams: 100_000,
	UserRequests: 1000, UserSubscriptions: 20_000, UserWebhooks: 100, UserStreams: 1000,
}

// limits keep count of what [Limits] bound.
type limits struct {
	Limits
	apps  *quota.Quota[string]
	users *quota.Quota[store.Person]
	bytes *quota.Quota[string]

	subscriptions estimates // of conversations and users

	mu      sync.Mutex
	tallies map[string]tally // by app
}

// A tally is how much an app has: as counted at a time, and what it was given since.
type tally struct {
	subscriptions, conversations int
	at                           time.Time
}

// tallyTime is how long a tally stands. Counting a million rows takes a while, so that not every subscription can do it; what
// ends meanwhile counts until the next time.
const tallyTime = time.Minute

func newLimits(l Limits) *limits {
	const day = 24 * time.Hour
	return &limits{
		Limits: l, tallies: map[string]tally{},
		apps:  quota.New[string](int64(l.AppRequests), time.Second, 2*int64(l.AppRequests)),
		users: quota.New[store.Person](int64(l.UserRequests), time.Second, 10*int64(l.UserRequests)),
		bytes: quota.New[string](l.AppBytes, day, l.AppBytes),
	}
}

// AllowApp refuses a request of an app that has made too many. Whoever lets an app in asks it once for each request.
func (c *Core) AllowApp(app wake.App) error {
	wait, ok := c.limits.apps.Take(app.ID, 1, time.Now())
	if ok {
		return nil
	}
	return tooMuch(wait, "this app makes more than %d requests a second, the most allowed", c.limits.AppRequests)
}

// checkCall refuses a call that is malformed, or one of too many in the name of its user.
func (c *Core) checkCall(app wake.App, call wake.Call) error {
	if err := call.Check(); err != nil || call.User == "" {
		return err
	}
	wait, ok := c.limits.users.Take(store.Person{App: app.ID, User: call.User}, 1, time.Now())
	if ok {
		return nil
	}
	return tooMuch(wait, "call.user: more than %d calls a second in the name of this user, the most allowed", c.limits.UserRequests)
}

// allowBytes refuses to keep occurrences of an app, at least one, that has had too much kept today.
func (c *Core) allowBytes(list []wake.Occurrence) error {
	if c.limits.bytes == nil {
		return nil
	}
	size := 0
	for _, o := range list {
		size += len(o.Arguments) + len(o.Text) + len(o.Data)
	}
	wait, ok := c.limits.bytes.Take(list[0].App, int64(size), time.Now())
	if ok {
		return nil
	}
	return tooMuch(wait, "this app has emitted %d bytes in a day, the most allowed", c.limits.AppBytes)
}

func tooMuch(wait time.Duration, format string, args ...any) error {
	no := refusal.New(refusal.RateLimited, format, args...)
	no.RetryAfter = wait
	return no
}

// countApp sees to it that the app's tally is no older than [tallyTime].
func (c *Core) countApp(ctx context.Context, app string) error {
	l := c.limits
	l.mu.Lock()
	known := l.tallies[app]
	l.mu.Unlock()
	if l.AppSubscriptions == 0 && l.AppConversations == 0 || time.Since(known.at) < tallyTime {
		return nil
	}
	counted := tally{at: time.Now()}
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		if counted.subscriptions, err = r.CountSubscriptionsOfApp(app); err != nil {
			return err
		}
		counted.conversations, err = r.CountConversations(app)
		return err
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tallies[app] = counted
	return nil
}

// made notes that a subscription was made, and perhaps its conversation.
func (l *limits) made(s wake.Subscription, conversations int) {
	l.subscriptions.add(s.Conversation, userOf(s))
	l.mu.Lock()
	defer l.mu.Unlock()
	t, known := l.tallies[s.App]
	if !known {
		return // it will be counted
	}
	t.subscriptions++
	t.conversations += conversations
	l.tallies[s.App] = t
}

// roomForConversation refuses another conversation to an app that has as many as it may.
func (c *Core) roomForConversation(app string) error {
	l := c.limits
	l.mu.Lock()
	defer l.mu.Unlock()
	if has := l.tallies[app].conversations; l.AppConversations > 0 && has >= l.AppConversations {
		return refusal.New(refusal.SubscriptionLimit, "this app has %d conversations, the most allowed", has)
	}
	return nil
}

// roomForSubscription refuses another subscription to a conversation, a user or an app that has as many as it may.
func (c *Core) roomForSubscription(r store.Reader, s wake.Subscription) error {
	l := c.limits
	has, ok, err := l.subscriptions.below(c.maxSubs, s.Conversation, func() (int, error) { return r.CountSubscriptions(s.Conversation) })
	if err != nil {
		return err
	}
	if !ok {
		return refusal.New(refusal.SubscriptionLimit, "this conversation has %d subscriptions, the most allowed", has)
	}
	if s.User != "" && l.UserSubscriptions > 0 {
		has, ok, err = l.subscriptions.below(l.UserSubscriptions, userOf(s), func() (int, error) { return r.CountSubscriptionsOfUser(s.App, s.User) })
		if err != nil {
			return err
		}
		if !ok {
			return refusal.New(refusal.SubscriptionLimit, "call.user: this user has %d subscriptions, the most allowed", has)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if has := l.tallies[s.App].subscriptions; l.AppSubscriptions > 0 && has >= l.AppSubscriptions {
		return refusal.New(refusal.SubscriptionLimit, "this app has %d subscriptions, the most allowed", has)
	}
	return nil
}

// userOf is whose subscription it is, among the names of estimates: no conversation has such an id.
func userOf(s wake.Subscription) string { return s.App + "/" + s.User }
