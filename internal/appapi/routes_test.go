package appapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rouse-dev/rouse/internal/appapi"
	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/trace"
)

// calls are the calls there are, each with a body that is accepted, but where the core of the tests delivers no webhooks.
var calls = []struct{ method, path, good string }{
	{"GET", "/app", ""},
	{"PUT", "/manifest", coretest.Manifest},
	{"POST", "/events/emit", emitJob("j", "t")},
	{"POST", "/event-subscriptions", subscribeJob(`"client":"claude-code"`, "j")},
	{"POST", "/event-subscriptions/unsubscribe", subscribeJob(`"client":"claude-code"`, "j")},
	{"POST", "/event-subscriptions/end", `{"user":"ada","id":"sub_x"}`},
	{"POST", "/event-subscriptions/list", `{"user":"ada"}`},
	{"POST", "/event-tools", `{"call":{"client":"claude-code"}}`},
	{"POST", "/event-tools/call", `{"call":{"client":"claude-code"},"tool":"list_subscriptions","arguments":{}}`},
	{"POST", "/events/publish-urls", `{"name":"crawl.finished","arguments":{"job":"j"}}`},
	{"POST", "/topics/publish-urls", `{"topic":"x"}`},
	{"POST", "/events/poll", `{"call":{},"params":{"name":"site.updated","arguments":{"site":"s"}}}`},
	{"POST", "/events/subscribe", `{"call":{},"params":{}}`},
	{"POST", "/events/unsubscribe", `{"call":{},"params":{}}`},
	{"POST", "/topics/subscribe", `{"call":{"client":"claude-code"},"topic":"x"}`},
	{"POST", "/topics/unsubscribe", `{"user":"ada"}`},
	{"POST", "/topics/publish", `{"topics":["x"],"event":{"text":"t"}}`},
	{"GET", "/topics/status?topic=x", ""},
	{"POST", "/topics/close", `{"topic":"x"}`},
	{"POST", "/topics/annotate", `{"call":{}}`},
	{"POST", "/users/forget", `{"user":"ada"}`},
	{"POST", "/workspaces", `{"external_id":"ada","name":"Ada"}`},
}

func TestEveryCallAnswersOneJSONObject(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for _, call := range calls {
		t.Run(call.path, func(t *testing.T) {
			l.app.send(t, call.method, call.path, call.good).good(t)
		})
	}
}

func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for _, path := range []string{"", "/", "/no-such-route", "/app/", "/events", "/events/emit/x", "/topics/status/x", "/\x00", "/é"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			r := httptest.NewRequest(method, "/", nil)
			r.URL.Path = appapi.Prefix + path
			if got := answered(l.api, r).says(t); got != "not_found: there is no such call: docs/wire.md lists them" {
				t.Errorf("%s %q: %s", method, path, got)
			}
		}
	}
}

func TestWrongMethods(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for _, call := range calls {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"} {
			if method == call.method {
				continue
			}
			got := l.app.send(t, method, call.path, call.good)
			if code, message := got.refused(t); code != refusal.MethodNotAllowed || message != "this call takes "+call.method {
				t.Errorf("%s %s: %s: %s", method, call.path, code, message)
			}
			if allow := got.header.Get("Allow"); allow != call.method {
				t.Errorf("%s %s: Allow is %q", method, call.path, allow)
			}
		}
	}
}

// An operator's terminal shows what was refused. What a stranger sends must not reach it.
func TestARefusalIsTracedByItsRoute(t *testing.T) {
	t.Parallel()
	l := setup(t)
	follower := l.Core.Feed().Follow()
	defer follower.Close()
	l.app.send(t, "POST", "/events/emit", "{}").refused(t)
	stray := httptest.NewRequest(http.MethodGet, appapi.Prefix+"/x", nil)
	stray.URL.Path = appapi.Prefix + "/\x1b[2J-wsk_secret"
	answered(l.api, stray).refused(t)
	for _, want := range []trace.Entry{
		{App: "crawler", Code: "bad_request", Detail: "POST /api/apps/v1/events/emit"},
		{Code: "not_found", Detail: "/"},
	} {
		got := <-follower.C()
		want.At, want.Kind = got.At, trace.Refused
		if got != want {
			t.Errorf("traced %+v, want %+v", got, want)
		}
	}
}
