package appapi_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
)

func TestForgettingAUser(t *testing.T) {
	t.Parallel()
	l := setup(t)
	other := l.another()
	l.app.post(t, "/event-subscriptions", subscribeJob(`"client":"claude-code","user":"ada"`, "j"))
	for _, step := range []struct {
		what string
		app  caller
		user string
		want bool
	}{
		{"another app's", other, "ada", false},
		{"a stranger", l.app, "bob", false},
		{"a user", l.app, "ada", true},
		{"again", l.app, "ada", false},
	} {
		if diff := cmp.Diff(members{"forgotten": step.want}, step.app.post(t, "/users/forget", `{"user":"`+step.user+`"}`)); diff != "" {
			t.Errorf("%s: %s", step.what, diff)
		}
	}
}

func TestForgettingRefuses(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for body, want := range map[string]string{
		`{}`:                 "bad_request: user: must not be empty",
		`{"user":""}`:        "bad_request: user: must not be empty",
		`{"user":null}`:      "bad_request: user: must not be empty",
		`{"user":"a\u0000"}`: "bad_request: user: must not contain control characters",
		`{"user":"` + strings.Repeat("a", 257) + `"}`: "bad_request: user: at most 256 characters",
	} {
		if got := l.app.send(t, http.MethodPost, "/users/forget", body).says(t); got != want {
			t.Errorf("%.40s: %s; want %s", body, got, want)
		}
	}
	for _, body := range []string{`{"user":7}`, `{"user":["ada"]}`, `["ada"]`, `{"user":"ada"`, ``} {
		if got := l.app.send(t, http.MethodPost, "/users/forget", body); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
}

func TestTooManyRequestsSayWhenToComeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := setup(t, func(o *core.Options) { o.Limits = core.Limits{AppRequests: 1} })
		for range 2 {
			l.app.send(t, http.MethodGet, "/app", "").good(t)
		}
		got := l.app.send(t, http.MethodGet, "/app", "")
		if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "1" ||
			got.says(t) != "rate_limited: this app makes more than 1 requests a second, the most allowed" {
			t.Errorf("%d, again after %q: %s", got.status, got.header.Get("Retry-After"), got.body)
		}
		another := l.another()
		another.send(t, http.MethodGet, "/app", "").good(t)
	})
}
