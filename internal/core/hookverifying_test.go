package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

// An asking is a subscription, and whether its endpoint is to be asked to prove itself.
type asking struct {
	what string
	core *core.Core // nil: the bench's
	app  wake.App
	ask  core.Native
	url  string
	want bool
}

// asks subscribes in turn and fails the test where an endpoint was asked that need not be, or the other way round.
func (b *bench) asks(list ...asking) {
	b.Helper()
	for _, one := range list {
		if one.core == nil {
			one.core = b.core
		}
		q := at(one.url)
		q.TTL = -1
		before := b.hooks.asked()
		if _, err := one.core.SubscribeWebhook(b.Context(), one.app, one.ask, q); err != nil {
			b.Fatalf("%s: %v", one.what, err)
		}
		if got := b.hooks.asked() - before; got != map[bool]int{true: 1, false: 0}[one.want] {
			b.Errorf("%s: its endpoint was asked %d times, want %v", one.what, got, one.want)
		}
	}
}

// asked is how many verifications there were.
func (f *fakeHooks) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.verified
}

// another is one more core on the bench's database.
func (b *bench) another() *core.Core {
	b.Helper()
	c, err := core.New(b.Context(), core.Options{Store: b.store, Master: credential.NewMaster([32]byte{1}), PublicURL: "http://core.test", Webhooks: b.hooks})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return c
}

var (
	bob  = wake.Call{Client: "native-test", User: "bob"}
	code = core.Native{Call: native, Name: "code.sent", Arguments: json.RawMessage(`{"job":"j"}`)}
)

func TestAnEndpointIsVerifiedOnceADay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		other, site, url := b.newApp("other"), siteRequest(native), hook.URL
		b.asks(
			asking{"at first", nil, b.app, site, url, true},
			asking{"a refresh", nil, b.app, site, url, false},
			asking{"another event", nil, b.app, code, url, false},
			asking{"another user", nil, b.app, siteRequest(bob), url, true},
			asking{"another app", nil, other, site, url, true},
			asking{"another URL", nil, b.app, site, url + "/y", true},
		)
		second := b.another()
		b.asks(
			asking{"a refresh at another core", second, b.app, site, url, false},
			asking{"another event there", second, b.app, core.Native{Call: native, Name: "site.updated", Arguments: json.RawMessage(`{"site":"t"}`)}, url, false},
		)
		if ended, err := b.core.UnsubscribeWebhook(t.Context(), b.app, site, url); err != nil || !ended {
			t.Errorf("%v, %v", ended, err)
		}
		b.asks(asking{"after unsubscribing", nil, b.app, site, url, false})
		time.Sleep(24*time.Hour - time.Second)
		b.asks(
			asking{"nearly a day later", nil, b.app, site, url, false},
			asking{"nearly a day later, at another core", second, b.app, site, url, false},
		)
		time.Sleep(time.Second)
		b.asks(
			asking{"a day later", second, b.app, site, url, true},
			asking{"just after that, at the other core", nil, b.app, site, url, false},
			asking{"just after that, another event", nil, b.app, code, url, false},
			asking{"a day later, another user", nil, b.app, siteRequest(bob), url, true},
		)
	})
}

// What did not pass is not remembered, and what passed before has passed still.
func TestAFailedVerificationIsNotRemembered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.asks(asking{"at first", nil, b.app, siteRequest(native), hook.URL, true})
	b.hooks.verify = "http_5xx"
	for range 2 {
		_, err := b.core.SubscribeWebhook(t.Context(), b.app, siteRequest(bob), hook)
		b.refused(err, refusal.CallbackFailed)
	}
	b.asks(asking{"a refresh", nil, b.app, siteRequest(native), hook.URL, false})
	b.hooks.verify = ""
	b.asks(asking{"once it passes", nil, b.app, siteRequest(bob), hook.URL, true})
}

func TestATrustedEndpointIsNotAsked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.hooks.trusted, b.hooks.verify = hook.URL, "challenge_failed"
	b.asks(
		asking{"at first", nil, b.app, siteRequest(native), hook.URL, false},
		asking{"another user", nil, b.app, siteRequest(bob), hook.URL, false},
	)
	b.hooks.trusted, b.hooks.verify = "", ""
	b.asks(asking{"once it is not trusted any more", nil, b.app, siteRequest(native), hook.URL, true})
	b.hooks.trusted = hook.URL
	b.asks(asking{"trusted again", nil, b.app, siteRequest(native), hook.URL, false})
	b.hooks.trusted = ""
	b.asks(asking{"what it passed meanwhile counts, at another core too", b.another(), b.app, siteRequest(native), hook.URL, false})
}

func TestForgettingAUserForgetsWhatItsEndpointsHavePassed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.newApp("other")
	b.asks(
		asking{"at first", nil, b.app, siteRequest(native), hook.URL, true},
		asking{"another user", nil, b.app, siteRequest(bob), hook.URL, true},
		asking{"another app", nil, other, siteRequest(native), hook.URL, true},
	)
	if ended, err := b.core.UnsubscribeWebhook(t.Context(), other, siteRequest(native), hook.URL); err != nil || !ended {
		t.Errorf("%v, %v", ended, err)
	}
	b.forget(native.User)
	b.asks(
		asking{"another user, after it", nil, b.app, siteRequest(bob), hook.URL, false},
		asking{"another app, after it", nil, other, siteRequest(native), hook.URL, false},
		asking{"the user", nil, b.app, siteRequest(native), hook.URL, true},
	)
}

// Nobody can have the core call one host without end, whether its endpoints pass or not.
func TestHowOftenOneHostIsAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verify string
		code   refusal.Code // of each that is asked; empty when it passes
	}{"they pass": {"", ""}, "they fail": {"challenge_failed", refusal.CallbackFailed}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, withLimits(core.Limits{}))
				subscribe := func(url string) error {
					_, err := b.core.SubscribeWebhook(t.Context(), b.app, siteRequest(native), at(url))
					return err
				}
				known, trusted := "https://busy.test/known", "https://busy.test/trusted"
				if err := subscribe(known); err != nil {
					t.Fatal(err)
				}
				b.hooks.verify, b.hooks.trusted = c.verify, trusted
				for i := 1; i < 120; i++ {
					if err := subscribe(fmt.Sprintf("https://busy.test/%d", i)); c.code == "" && err != nil || c.code != "" && !refusal.Is(err, c.code) {
						t.Fatalf("%d: %v", i, err)
					}
				}
				no := refusal.Of(subscribe("https://busy.test/more"))
				if no == nil || no.Code != refusal.RateLimited || no.RetryAfter != 500*time.Millisecond {
					t.Fatalf("one more: %+v", no)
				}
				for _, dialect := range []string{core.DialectDraft, core.DialectChatGPT} {
					d, _ := core.DialectNamed(dialect)
					told := d.ErrorOf(no)
					if diff := cmp.Diff(wireError{d.Exhausted, map[string]any{"limit": "verifications"}}, wireError{told.Code, told.Data}); diff != "" {
						t.Error(diff)
					}
				}
				if asked := b.hooks.asked(); asked != 120 {
					t.Errorf("asked %d times, want 120", asked)
				}
				for _, url := range []string{known, trusted} {
					if err := subscribe(url); err != nil {
						t.Errorf("%s: %v", url, err)
					}
				}
				b.hooks.verify = ""
				if err := subscribe("https://idle.test/"); err != nil {
					t.Errorf("another host: %v", err)
				}
				time.Sleep(no.RetryAfter)
				if err := subscribe("https://busy.test/more"); err != nil {
					t.Errorf("after the wait: %v", err)
				}
				b.refused(subscribe("https://busy.test/still-more"), refusal.RateLimited)
			})
		})
	}
}

// patient endpoints answer a verification once they are let.
type patient struct {
	*fakeHooks
	let chan struct{}
}

func (p patient) Verify(ctx context.Context, to core.HookTarget) (string, bool) {
	<-p.let
	return p.fakeHooks.Verify(ctx, to)
}

func TestHowManyEndpointsAreVerifiedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		b := setup(t, withLimits(core.Limits{}), func(o *core.Options) { o.Webhooks = patient{o.Webhooks.(*fakeHooks), let} })
		subscribe := func(i int) error {
			_, err := b.core.SubscribeWebhook(t.Context(), b.app, siteRequest(native), at(fmt.Sprintf("https://host%d.test/", i)))
			return err
		}
		const most = 256
		failed := make(chan error, most)
		for i := range most {
			go func() { failed <- subscribe(i) }()
		}
		synctest.Wait()
		no := refusal.Of(subscribe(most))
		if no == nil || no.Code != refusal.RateLimited || no.Reason != "verifications" || no.RetryAfter != time.Second {
			t.Errorf("one more: %+v", no)
		}
		close(let)
		for range most {
			if err := <-failed; err != nil {
				t.Error(err)
			}
		}
		if err := subscribe(most); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
