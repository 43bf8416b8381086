package webhook_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wakepath/webhook"
)

func TestEndpointsCheckTarget(t *testing.T) {
	t.Parallel()
	endpoints := webhook.Endpoints{Sender: local(t)}
	for _, c := range []struct{ url, secret, want string }{
		{"https://hooks.example.com/", secretText, ""},
		{"http://127.0.0.1/", secretText, ""},
		{"ftp://hooks.example.com/", secretText, "bad_request: delivery.url: not a URL to deliver to: it must begin with https://"},
		{"https://hooks.example.com/", "", "bad_request: delivery.secret: not a webhook secret: it must begin with whsec_"},
	} {
		err := endpoints.CheckTarget(c.url, c.secret)
		if diff := cmp.Diff(c.want, text(err)); diff != "" {
			t.Error(diff)
		}
		if err != nil && !refusal.Is(err, refusal.BadRequest) {
			t.Errorf("%v is no refusal", err)
		}
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	endpoints := webhook.Endpoints{Sender: local(t)}
	to := core.HookTarget{URL: receiver(t, echo), Secrets: []string{secretText, secretOf(32)}, Subscription: "sub_1"}
	if reason, ok := endpoints.Verify(t.Context(), to); !ok || reason != "" {
		t.Errorf("not verified: %s", reason)
	}
	if diff := cmp.Diff(core.HookResult{Delivered: true, Status: 200}, endpoints.Deliver(t.Context(), to, "msg_1", message.Body)); diff != "" {
		t.Error(diff)
	}
	to.URL = receiver(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	if reason, ok := endpoints.Verify(t.Context(), to); ok || reason != "challenge_failed" {
		t.Errorf("verified, or failed for %q", reason)
	}
	want := core.HookResult{Retry: true, RetryAfter: 3 * time.Second, Status: 503, Reason: "http_5xx"}
	if diff := cmp.Diff(want, endpoints.Deliver(t.Context(), to, "msg_1", message.Body)); diff != "" {
		t.Error(diff)
	}
	to.Secrets = []string{"no secret"}
	if reason, ok := endpoints.Verify(t.Context(), to); ok || reason != "connection_refused" {
		t.Errorf("verified, or failed for %q", reason)
	}
	if diff := cmp.Diff(core.HookResult{Reason: "connection_refused"}, endpoints.Deliver(t.Context(), to, "msg_1", message.Body)); diff != "" {
		t.Error(diff)
	}
}
