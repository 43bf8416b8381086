package core_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

// limited fails the test unless err is a refusal with that code that names the limit, and when asked for, how long to wait.
func (b *bench) limited(err error, code refusal.Code, names string, wait time.Duration) {
	b.Helper()
	no := refusal.Of(err)
	if no == nil || no.Code != code || !strings.Contains(no.Message, names) || no.RetryAfter != wait {
		b.Errorf("%v, again after %v; want %s with %q and %v", err, func() any {
			if no == nil {
				return nil
			}
			return no.RetryAfter
		}(), code, names, wait)
	}
}

func withLimits(l core.Limits) func(*core.Options) { return func(o *core.Options) { o.Limits = l } }

func TestAnAppsRequestsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withLimits(core.Limits{AppRequests: 10}))
		other := b.newApp("other")
		for range 20 {
			if err := b.core.AllowApp(b.app); err != nil {
				t.Fatal(err)
			}
		}
		b.limited(b.core.AllowApp(b.app), refusal.RateLimited, "10 requests a second", 100*time.Millisecond)
		if err := b.core.AllowApp(other); err != nil {
			t.Errorf("another app: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
		if err := b.core.AllowApp(b.app); err != nil {
			t.Errorf("after that time: %v", err)
		}
	})
}

func TestPublishURLsCountForTheirApp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withLimits(core.Limits{AppRequests: 1}))
		_, url, err := b.core.TopicPublishURL(t.Context(), b.app, "news")
		if err != nil {
			t.Fatal(err)
		}
		token := url[strings.LastIndex(url, "/")+1:]
		for range 2 {
			if _, err := b.core.PublishBy(t.Context(), token, core.Post{Text: "hello"}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = b.core.PublishBy(t.Context(), token, core.Post{Text: "hello"})
		b.limited(err, refusal.RateLimited, "1 requests a second", time.Second)
	})
}

func TestAUsersCallsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withLimits(core.Limits{UserRequests: 1}))
		done := b.subscribe(claude, "j1")
		for i := range 9 {
			b.subscribe(claude, fmt.Sprintf("k%d", i))
		}
		call := claude
		call.Session = done.Session
		request := siteRequest(claude)
		for name, f := range map[string]func() error{
			"subscribing": func() error {
				_, err := b.core.SubscribeEvent(t.Context(), b.app, claude, "crawl.finished", args("j1"), false)
				return err
			},
			"a topic": func() error {
				_, err := b.core.SubscribeTopic(t.Context(), b.app, claude, "news", core.TopicOptions{})
				return err
			},
			"unsubscribing": func() error {
				_, err := b.core.UnsubscribeEvent(t.Context(), b.app, call, "crawl.finished", args("j1"))
				return err
			},
			"annotating": func() error { _, _, err := b.core.Annotate(t.Context(), b.app, call); return err },
			"polling":    func() error { _, err := b.core.Poll(t.Context(), b.app, request, core.Poll{}); return err },
			"a webhook":  func() error { _, err := b.core.SubscribeWebhook(t.Context(), b.app, request, hook); return err },
		} {
			t.Log(name)
			b.limited(f(), refusal.RateLimited, "call.user", time.Second)
		}
		b.subscribe(wake.Call{Client: "claude-code", User: "bob"}, "j1")
		if _, _, err := b.core.Annotate(t.Context(), b.app, wake.Call{Client: "claude-code"}); err != nil {
			t.Errorf("a call of nobody: %v", err)
		}
		time.Sleep(time.Second)
		b.subscribe(claude, "j1")
	})
}

func TestSubscriptionsAreLimited(t *testing.T) {
	t.Parallel()
	subscribe := func(b *bench, user, job string) error {
		_, err := b.core.SubscribeEvent(b.Context(), b.app, wake.Call{Client: "claude-code", User: user}, "crawl.finished", args(job), false)
		return err
	}
	t.Run("of a user", func(t *testing.T) {
		t.Parallel()
		b := setup(t, withLimits(core.Limits{UserSubscriptions: 2}))
		one := b.subscribe(claude, "j1")
		b.subscribe(claude, "j2")
		b.limited(subscribe(b, claude.User, "j3"), refusal.SubscriptionLimit, "call.user: this user has 2 subscriptions", 0)
		if err := subscribe(b, "bob", "j3"); err != nil {
			t.Errorf("another user: %v", err)
		}
		for range 3 {
			if err := subscribe(b, "", "j3"); err != nil {
				t.Errorf("nobody: %v", err)
			}
		}
		call := claude
		call.Session = one.Session
		if again := b.subscribe(call, "j1"); again.Created {
			t.Error("renewing made another")
		}
		if ended, err := b.core.UnsubscribeEvent(t.Context(), b.app, call, "crawl.finished", args("j1")); err != nil || !ended {
			t.Fatal(ended, err)
		}
		b.subscribe(claude, "j3")
	})
	t.Run("of an app", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, withLimits(core.Limits{AppSubscriptions: 3}))
			for i := range 3 {
				b.subscribe(claude, fmt.Sprintf("j%d", i))
			}
			b.limited(subscribe(b, "bob", "j"), refusal.SubscriptionLimit, "this app has 3 subscriptions", 0)
			if ended, err := b.core.ForgetUser(t.Context(), b.app, claude.User); err != nil || !ended {
				t.Fatal(ended, err)
			}
			time.Sleep(time.Minute) // until they are counted again
			if err := subscribe(b, "bob", "j"); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("conversations of an app", func(t *testing.T) {
		t.Parallel()
		b := setup(t, withLimits(core.Limits{AppConversations: 2}))
		one := b.subscribe(claude, "j1")
		b.subscribe(claude, "j1")
		b.limited(subscribe(b, "bob", "j"), refusal.SubscriptionLimit, "this app has 2 conversations", 0)
		call := claude
		call.Session = one.Session
		b.subscribe(call, "j2")
	})
	t.Run("webhooks of a user", func(t *testing.T) {
		t.Parallel()
		b := setup(t, withLimits(core.Limits{UserWebhooks: 1}))
		b.hooked(hook)
		another := hook
		another.URL += "/other"
		_, err := b.core.SubscribeWebhook(t.Context(), b.app, siteRequest(native), another)
		b.limited(err, refusal.SubscriptionLimit, "1 webhook subscriptions", 0)
		b.hooked(hook) // refreshing is none more
	})
}

func TestAnAppsBytesAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size, most = 48_000, 24 * 60 * 1000 // a thirtieth of a day's bytes
		b := setup(t, withLimits(core.Limits{AppBytes: most}))
		one := core.Emit{Name: "crawl.finished", Arguments: args("j"), Payload: json.RawMessage(`{"pages":1}`)}
		one.Text = strings.Repeat("t", size-len(one.Arguments)-len(one.Payload))
		if _, err := b.core.EmitBatch(t.Context(), b.app, slices.Repeat([]core.Emit{one}, most/size)); err != nil {
			t.Fatal(err)
		}
		_, err := b.core.Emit(t.Context(), b.app, one)
		b.limited(err, refusal.RateLimited, "1440000 bytes in a day", 48*time.Minute)
		_, err = b.core.Send(t.Context(), b.app, b.subscribe(claude, "j").Subscription.ID, core.Send{Text: "half an hour's" + strings.Repeat("t", size/2-14)})
		b.limited(err, refusal.RateLimited, "1440000 bytes in a day", 24*time.Minute)
		time.Sleep(48 * time.Minute)
		if _, err := b.core.Emit(t.Context(), b.app, one); err != nil {
			t.Errorf("after that time: %v", err)
		}
	})
}
