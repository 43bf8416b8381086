package core_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

// hooked subscribes a webhook to site s.
func (b *bench) hooked(q core.HookRequest) core.HookGranted {
	b.Helper()
	granted, err := b.core.SubscribeWebhook(b.Context(), b.app, siteRequest(native), q)
	if err != nil {
		b.Fatal(err)
	}
	return granted
}

func TestFailedDeliveriesAreTriedAgainWithinBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.hooked(hook)
		failed := core.HookResult{Retry: true, Reason: "http_5xx"}
		b.hooks.fail(failed, failed, failed, failed, failed, failed, failed)
		b.site("s", "1")
		time.Sleep(time.Hour)
		if len(b.hooks.deliveries()) != 5 {
			t.Errorf("tried %d times, want 5", len(b.hooks.deliveries()))
		}
		for _, sent := range b.hooks.deliveries() {
			if sent.ID != b.hooks.deliveries()[0].ID || sent.Body != b.hooks.deliveries()[0].Body {
				t.Errorf("an attempt differs: %+v", sent)
			}
		}
		status := b.hooked(hook).Status
		if status == nil || status.LastError != "http_5xx" || status.FailedSince.IsZero() {
			t.Errorf("status %+v", status)
		}
	})
}

func TestAFinalFailureIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.hooked(hook)
		b.hooks.fail(core.HookResult{Reason: "http_4xx"})
		b.site("s", "1")
		b.site("s", "2")
		time.Sleep(time.Hour)
		if len(b.hooks.deliveries()) != 2 {
			t.Errorf("sent %d times, want each event once", len(b.hooks.deliveries()))
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.hooked(hook)
		b.hooks.fail(core.HookResult{Retry: true, Reason: "http_5xx", RetryAfter: 10 * time.Minute})
		b.site("s", "1")
		time.Sleep(9 * time.Minute)
		if len(b.hooks.deliveries()) != 1 {
			t.Errorf("sent %d times before the time asked for", len(b.hooks.deliveries()))
		}
		time.Sleep(2 * time.Minute)
		if len(b.hooks.deliveries()) != 2 {
			t.Errorf("sent %d times after it", len(b.hooks.deliveries()))
		}
	})
}

func TestASecretRotatesWithGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.hooked(hook)
		next := hook
		next.Secret = "whsec_two"
		b.hooked(next)
		b.site("s", "1")
		synctest.Wait()
		if got, want := b.hooks.deliveries()[0].Target.Secrets, []string{"whsec_two", "whsec_one"}; !cmp.Equal(want, got) {
			t.Errorf("signed with %q", got)
		}
		time.Sleep(23 * time.Hour)
		b.hooked(next)
		time.Sleep(2 * time.Hour)
		b.site("s", "2")
		synctest.Wait()
		if got, want := b.hooks.deliveries()[1].Target.Secrets, []string{"whsec_two"}; !cmp.Equal(want, got) {
			t.Errorf("after the grace signed with %q", got)
		}
	})
}

func TestAnEndpointThatFailsItsVerificationIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.hooks.verify = "challenge_failed"
	_, err := b.core.SubscribeWebhook(t.Context(), b.app, siteRequest(native), hook)
	b.refused(err, refusal.CallbackFailed)
	if r := refusal.Of(err); r == nil || r.Reason != "challenge_failed" {
		t.Errorf("%+v", r)
	}
	if done := b.site("s", "1"); done.Matched != 0 {
		t.Error("it was subscribed all the same")
	}
	nobody := siteRequest(wake.Call{Client: "native-test"})
	_, err = b.core.SubscribeWebhook(t.Context(), b.app, nobody, hook)
	b.refused(err, refusal.Forbidden)
}

func TestAWebhookIsGrantedATimeAndEndsWithIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		for name, test := range map[string]struct{ ttl, want time.Duration }{
			"absent": {0, 24 * time.Hour}, "short": {time.Second, 5 * time.Second}, "fair": {time.Hour, time.Hour},
			"long": {365 * 24 * time.Hour, 7 * 24 * time.Hour},
		} {
			q := hook
			q.URL, q.TTL = "https://hook.test/"+name, test.ttl
			if got := time.Until(b.hooked(q).RefreshBefore).Round(time.Second); got != test.want {
				t.Errorf("%s: granted %v, want %v", name, got, test.want)
			}
		}
		endless := hook
		endless.URL, endless.TTL = "https://hook.test/endless", -1
		if got := b.hooked(endless).RefreshBefore; !got.IsZero() {
			t.Errorf("without end: granted until %v", got)
		}
		if done := b.site("s", "1"); done.Matched != 5 {
			t.Errorf("matched %d", done.Matched)
		}
		time.Sleep(6 * time.Second)
		if done := b.site("s", "2"); done.Matched != 4 {
			t.Errorf("after a grant of 5 s it matched %d", done.Matched)
		}
	})
}

func TestUnsubscribingAWebhook(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.hooked(hook)
	stranger := siteRequest(wake.Call{Client: "native-test", User: "bob"})
	for i, try := range []struct {
		ask  core.Native
		want bool
	}{{stranger, false}, {siteRequest(native), true}, {siteRequest(native), false}} {
		ended, err := b.core.UnsubscribeWebhook(t.Context(), b.app, try.ask, hook.URL)
		if err != nil || ended != try.want {
			t.Errorf("try %d: %v, %v", i, ended, err)
		}
	}
	if done := b.site("s", "1"); done.Matched != 0 {
		t.Error("it still matches")
	}
}

func TestWebhookSecretsAreSealedAtRest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	granted := b.hooked(hook)
	_, hooks, err := b.core.Standing(t.Context(), b.app.ID)
	if err != nil || len(hooks) != 1 || hooks[0].ID != granted.ID {
		t.Fatalf("%+v, %v", hooks, err)
	}
	if string(hooks[0].Secret) == hook.Secret {
		t.Error("the secret is kept in the clear")
	}
}

// Whoever slept through its lease does not undo what the attempt after it has found.
func TestAnAttemptThatOutlastsItsLeaseCountsForNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.hooked(hook)
		b.hooks.fail(core.HookResult{Retry: true, Reason: "timeout"})
		b.hooks.pauses = []time.Duration{5 * time.Minute}
		b.site("s", "1")
		time.Sleep(2 * time.Minute)
		if len(b.hooks.deliveries()) != 2 {
			t.Fatalf("made %d attempts, want another once the first one's lease has lapsed", len(b.hooks.deliveries()))
		}
		time.Sleep(time.Hour)
		if len(b.hooks.deliveries()) != 2 {
			t.Errorf("made %d attempts, though the second one was taken", len(b.hooks.deliveries()))
		}
		if status := b.hooked(hook).Status; status == nil || status.LastError != "" || !status.FailedSince.IsZero() {
			t.Errorf("status %+v: the late failure counts", status)
		}
	})
}

// A slow endpoint does not take up all workers.
func TestFewDeliveriesOfOneWebhookAreUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.hooked(hook)
		other := hook
		other.URL = "https://other.example/hook"
		for range 100 {
			b.hooks.pauses = append(b.hooks.pauses, 10*time.Second)
		}
		for range 20 {
			b.site("s", "1")
		}
		synctest.Wait()
		if got := len(b.hooks.deliveries()); got != 4 {
			t.Errorf("%d deliveries are under way, want 4", got)
		}
		b.hooked(other)
		b.site("s", "2")
		synctest.Wait()
		if got := len(b.hooks.deliveries()); got != 5 {
			t.Errorf("%d deliveries are under way with another webhook's, want 5", got)
		}
		time.Sleep(5 * time.Minute)
		if got := len(b.hooks.deliveries()); got != 22 {
			t.Errorf("%d deliveries were made in the end, want 22", got)
		}
	})
}
