package native_test

import (
	"context"
	"encoding/json"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/wakepath/native"
)

// reached stands for endpoints that always pass: there is no network on synctest's clock.
type reached struct{}

func (reached) CheckTarget(string, string) error                       { return nil }
func (reached) Host(string) string                                     { return "hook.example:443" }
func (reached) Trusts(string) bool                                     { return false }
func (reached) Verify(context.Context, core.HookTarget) (string, bool) { return "", true }
func (reached) Deliver(context.Context, core.HookTarget, string, []byte) core.HookResult {
	return core.HookResult{Delivered: true}
}

// inBubble runs a test on synctest's clock; ask makes a request whose result it gives.
func inBubble(t *testing.T, f func(b *coretest.Bench, ask func(m method, params string) map[string]any)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := coretest.New(t, func(o *core.Options) { o.Webhooks = reached{} })
		f(b, func(m method, params string) (result map[string]any) {
			got := request(t, b, m, native.Request{Call: clients["draft"], Params: json.RawMessage(params)})
			text, err := json.Marshal(got.Result)
			if err != nil || json.Unmarshal(text, &result) != nil || result == nil {
				t.Fatalf("%s: %+v, %v", params, got, err)
			}
			return result
		})
	})
}

func TestHowLongASubscriptionLives(t *testing.T) {
	inBubble(t, func(b *coretest.Bench, ask func(method, string) map[string]any) {
		if got := ask(native.Subscribe, about(by("https://hook.example/", secret)+`,"ttlMs":null`)); got["refreshBefore"] != nil {
			t.Errorf("without end: %v", got["refreshBefore"])
		}
		for ttl, want := range map[string]time.Duration{
			``:                    24 * time.Hour,
			`,"ttlMs":3600000`:    time.Hour,
			`,"ttlMs":1e300`:      7 * 24 * time.Hour,
			`,"ttlMs":0`:          5 * time.Second,
			`,"ttlMs":1`:          5 * time.Second,
			`,"ttlMs":604799000`:  7*24*time.Hour - time.Second,
			`,"ttlMs":6048000000`: 7 * 24 * time.Hour,
		} {
			got := ask(native.Subscribe, about(by("https://hook.example/", secret)+ttl))
			if diff := cmp.Diff(time.Now().Add(want).UTC().Format(time.RFC3339), got["refreshBefore"]); diff != "" {
				t.Errorf("%s: %s", ttl, diff)
			}
		}
	})
}

func TestHowFarBackIsLooked(t *testing.T) {
	inBubble(t, func(b *coretest.Bench, ask func(method, string) map[string]any) {
		start := `,"cursor":` + quote(ask(native.Poll, about(``))["cursor"].(string))
		site(b, b, "old")
		time.Sleep(time.Minute)
		site(b, b, "new")
		for age, want := range map[string]struct {
			events    int
			truncated bool
		}{
			``:                   {2, false},
			`,"maxAgeMs":null`:   {2, false},
			`,"maxAgeMs":90000`:  {2, false},
			`,"maxAgeMs":30000`:  {1, true},
			`,"maxAgeMs":1e300`:  {2, false},
			`,"maxAgeMs":5.9e+4`: {1, true},
		} {
			polled := ask(native.Poll, about(start+age))
			if n := len(polled["events"].([]any)); n != want.events || polled["truncated"] != want.truncated {
				t.Errorf("poll %s: %d events, truncated %v", age, n, polled["truncated"])
			}
			subscribed := ask(native.Subscribe, about(by("https://hook.example/"+url.PathEscape(age), secret)+start+age))
			if subscribed["truncated"] != want.truncated {
				t.Errorf("subscribe %s: truncated %v", age, subscribed["truncated"])
			}
		}
	})
}

func TestStatusOnWire(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	for name, c := range map[string]struct {
		status core.HookStatus
		want   map[string]any
	}{
		"nothing yet": {core.HookStatus{Active: true}, map[string]any{"active": true, "lastError": nil}},
		"delivered": {core.HookStatus{Active: true, LastDeliveryAt: at},
			map[string]any{"active": true, "lastDeliveryAt": "2026-11-30T11:00:00Z", "lastError": nil}},
		"failing": {core.HookStatus{LastDeliveryAt: at, LastError: "timeout", FailedSince: at.Add(time.Minute)}, map[string]any{"active": false,
			"lastDeliveryAt": "2026-11-30T11:00:00Z", "lastError": "timeout", "failedSince": "2026-11-30T11:01:00Z"}},
		"throttled": {core.HookStatus{Active: true, LastError: "http_5xx", Throttled: true, RetryAfter: 90 * time.Second},
			map[string]any{"active": true, "lastError": "http_5xx", "throttled": true, "retryAfterMs": int64(90_000)}},
	} {
		if diff := cmp.Diff(c.want, native.StatusOnWire(c.status)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
