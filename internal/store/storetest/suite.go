package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Run runs the suite. open gives a store with an empty database, and sees to it that it is closed in the end; reopen
// closes a store and opens its database again. Tests run in parallel, each on stores of its own.
func Run(t *testing.T, open func(*testing.T) store.Store, reopen func(*testing.T, store.Store) store.Store) {
	tests := []struct {
		name string
		test func(*suite)
	}{
		{"apps", testApps},
		{"keys", testKeys},
		{"manifests", testManifests},
		{"conversations", testConversations},
		{"conversation of a thread", testConversationOf},
		{"positions", testAdvance},
		{"what waits, handed over", testHand},
		{"subscriptions", testSubscriptions},
		{"subscription lists", testSubscriptionLists},
		{"subscriptions to topics", testSubscriptionsTo},
		{"subscriptions that end", testEndSubscription},
		{"subscriptions that expire", testExpiredSubscriptions},
		{"some subscriptions to a topic", testSomeSubscriptionsTo},
		{"who takes what is written", testTakers},
		{"topics with very many subscriptions", testCrowds},
		{"replays", testReplays},
		{"places by time", testPlaceBefore},
		{"workspaces", testWorkspaces},
		{"webhooks", testWebhooks},
		{"publish URLs", testPublishURLs},
		{"webhook lists", testWebhookLists},
		{"who is on topics that were foreseen", testForeseen},
		{"deliveries", testDeliveries},
		{"claims", testClaims},
		{"claims that lapse", testClaimFences},
		{"claims with limits", testClaimLimits},
		{"claims and suspended webhooks", testClaimsSuspended},
		{"claims and hosts", testClaimHosts},
		{"claims at once", testClaimers},
		{"kinds of deliveries", testDeliveryKinds},
		{"notices and content owed", testNoticesAndErasing},
		{"watermarks", testWatermarks},
		{"deliveries queued again", testRequeue},
		{"deliveries of what is owed queued again", testRequeueOwed},
		{"queues that are trimmed", testTrim},
		{"health", testHealth},
		{"attempts", testAttempts},
		{"attempts of one among many", testManyAttempts},
		{"webhooks that end", testEndWebhook},
		{"webhooks that end and are forgotten", testForgetEndedWebhook},
		{"endpoints that proved themselves", testVerifiedAt},
		{"pruning webhooks", testPruneWebhooks},
		{"pruning what is queued", testPruneGaps},
		{"occurrences", testOccurrences},
		{"content of all kinds", testContent},
		{"occurrences by key", testOccurrenceKeys},
		{"taken keys among others", testTakenKeys},
		{"occurrences by topic", testOccurrencesByTopic},
		{"names of topics", testTopicNames},
		{"occurrences page by page", testOccurrencePages},
		{"what a write refers to", testReferences},
		{"deleting an app", testDeleteApp},
		{"pruning occurrences", testPruneOccurrences},
		{"pruning all else", testPruneRest},
		{"content owed to nobody", testOwe},
		{"content owed to a later webhook", testOweToo},
		{"releases of what is owed", testReleases},
		{"pruning what is owed", testPruneOwed},
		{"erasures", testErasures},
		{"forgetting a user", testForget},
		{"forgetting in steps", testForgetInSteps},
		{"pruning the log alone", testPruneLog},
		{"the oldest occurrences", testOldestOccurrences},
		{"subscriptions that are behind", testSubscriptionsBehind},
		{"counts", testCounts},
		{"size", testSize},
		{"check", testCheck},
		{"a failure keeps nothing", testFailure},
		{"a failure leaves its neighbours", testNeighbours},
		{"a panic keeps nothing", testPanic},
		{"an ended goroutine keeps nothing", testGoexit},
		{"contexts", testContexts},
		{"snapshots", testSnapshot},
		{"closing", testClose},
		{"one key at once", testSameKey},
		{"readers by cursor", testCursors},
		{"slow transactions", testSlowTransactions},
		{"used-up ids", testSpend},
		{"used-up ids at once", testSpendConcurrently},
		{"restart", testRestart},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.test(&suite{T: t, Store: open(t), open: reopen})
		})
	}
}

// A suite is a test and the store it works on.
type suite struct {
	*testing.T
	store.Store
	open func(*testing.T, store.Store) store.Store
	ids  atomic.Int64
}

// start is when everything happens in these tests, give or take. Stores keep microseconds.
var start = time.Date(2026, time.November, 30, 12, 0, 0, 123456000, time.UTC)

// id gives a name that was not used before.
func (s *suite) id(of string) string { return fmt.Sprintf("%s-%d", of, s.ids.Add(1)) }

// reopen restarts the store.
func (s *suite) reopen() { s.Store = s.open(s.T, s.Store) }

// update runs one transaction that must succeed.
func (s *suite) update(f func(store.Tx) error) {
	s.Helper()
	if err := s.Update(s.Context(), f); err != nil {
		s.Fatalf("Update: %v", err)
	}
}

// view runs a view that must succeed.
func (s *suite) view(f func(store.Reader) error) {
	s.Helper()
	if err := s.View(s.Context(), f); err != nil {
		s.Fatalf("View: %v", err)
	}
}

// change writes, and makes the check in the same transaction, in a view, and in a transaction after.
func (s *suite) change(write func(store.Tx) error, check func(store.Reader)) {
	s.Helper()
	s.update(func(t store.Tx) error {
		if err := write(t); err != nil {
			return err
		}
		check(t)
		return nil
	})
	s.check(check)
}

// check makes the check in a view and in a transaction.
func (s *suite) check(check func(store.Reader)) {
	s.Helper()
	s.view(func(r store.Reader) error { check(r); return nil })
	s.update(func(t store.Tx) error { check(t); return nil })
}

// same fails the test when what was got is not what was wanted. A nil list and an empty one are the same.
func (s *suite) same(what string, want, got any) {
	s.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), asText); diff != "" {
		s.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// asText compares JSON as one piece of text.
var asText = cmp.FilterValues(
	func(a, b json.RawMessage) bool { return len(a)+len(b) > 0 },
	cmp.Transformer("text", func(b json.RawMessage) string { return string(b) }),
)

// is fails the test when the error is not the wanted one.
func (s *suite) is(what string, want, got error) {
	s.Helper()
	if !errors.Is(got, want) {
		s.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

// got takes a result apart whose error must be nil.
func got[T any](s *suite) func(v T, err error) T {
	s.Helper()
	return func(v T, err error) T {
		s.Helper()
		if err != nil {
			s.Errorf("unexpected error: %v", err)
		}
		return v
	}
}

// fails gives the error of a call whose value does not matter.
func fails[T any](_ T, err error) error { return err }

// do runs the writes one after the other until one fails.
func do(errs ...func() error) error {
	for _, f := range errs {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// addApp makes an app.
func (s *suite) addApp() wake.App {
	s.Helper()
	app := wake.App{ID: s.id("app"), Name: "An app", CreatedAt: start}
	s.update(func(t store.Tx) error { return t.CreateApp(app) })
	return app
}

// addConversation makes a conversation of the app.
func (s *suite) addConversation(app string) wake.Conversation {
	s.Helper()
	c := wake.Conversation{
		ID: s.id("conversation"), App: app, Harness: "claude-code", Client: "claude-code", Version: "2.1",
		User: "ada", Thread: s.id("thread"), CreatedAt: start, SeenAt: start,
	}
	s.update(func(t store.Tx) error { return t.PutConversation(c) })
	return c
}

// subscription gives a live one of the conversation, which is not in the store.
func (s *suite) subscription(c wake.Conversation, topic string) wake.Subscription {
	return wake.Subscription{
		ID: s.id("subscription"), App: c.App, Conversation: c.ID, User: c.User, Topic: topic, Event: "crawl.finished",
		Arguments: []byte(`{"job":"j1"}`), CreatedAt: start, ExpiresAt: start.Add(time.Hour),
	}
}

// addSubscription makes a live subscription.
func (s *suite) addSubscription(c wake.Conversation, topic string) wake.Subscription {
	s.Helper()
	sub := s.subscription(c, topic)
	s.update(func(t store.Tx) error { return t.PutSubscription(sub) })
	return sub
}

// addWebhook makes a webhook of the app.
func (s *suite) addWebhook(app, topic string) wake.Webhook {
	s.Helper()
	w := wake.Webhook{
		ID: s.id("webhook"), App: app, Principal: "ada", User: "ada", URL: "https://example.com/hook", Event: "crawl.finished",
		Topic: topic, Dialect: "draft", CreatedAt: start, ExpiresAt: start.Add(time.Hour), Secret: []byte("sealed"),
	}
	s.update(func(t store.Tx) error { return t.PutWebhook(w) })
	return w
}

// occurrence gives one that is not in the log.
func occurrence(app string, topics ...string) wake.Occurrence {
	return wake.Occurrence{
		App: app, Kind: wake.KindEvent, Event: "crawl.finished", Topics: topics, Arguments: []byte(`{"job":"j1"}`),
		Text: "The crawl is finished.", Data: []byte(`{"pages":3}`), At: start,
	}
}

// append writes an occurrence and returns it with its place.
func (s *suite) append(o wake.Occurrence) wake.Occurrence {
	s.Helper()
	s.update(func(t store.Tx) (err error) {
		o.Seq, err = t.Append(o)
		return err
	})
	return o
}
