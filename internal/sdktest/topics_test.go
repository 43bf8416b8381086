//go:build unix

package sdktest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func topics(t *testing.T, a *app) {
	claude := a.agent(t, client{name: "claude-code"})
	first := claude.call("watch_topic", given("topic", "ci/one", "keep", given("branch", "main")))
	made := structured(t, first)
	want := given("id", made["id"], "topic", "ci/one", "once", false, "filter", given("branch", "main"), "expires_at", made["expires_at"])
	if diff := cmp.Diff(want, made); diff != "" {
		t.Fatalf("subscribed (-want +got):\n%s", diff)
	}
	key := find(t, sessionForm, text(first))
	claude.done("watch_topic", given("topic", "ci/two", "session_key", key))
	m := monitoring(t, text(first))

	both := given("topics", []string{"ci/one", "ci/two"}, "text", "CI of main", "data", given("branch", "main"), "id", "1")
	claude.says(emitted(1, false), "publish", both)
	m.expect(message{Type: "event", Subject: "CI of main", Data: given("branch", "main")})
	claude.says(emitted(1, true), "publish", both)
	claude.says(emitted(0, false), "publish", given("topics", []string{"ci/one"}, "text", "filtered", "data", given("branch", "next")))

	claude.says(given("topic", "ci/one", "subscriptions", 1.0, "connected", 1.0, "via", given("stream", 1.0, "poll", 0.0, "hooks", 0.0, "webhook", 0.0)),
		"topic_status", given("topic", "ci/one"))
	claude.says(given("closed", 1.0), "close_topic", given("topic", "ci/one"))
	if told := m.next(); told.Type != "ended" || !strings.Contains(told.Subject, "ci/one") {
		t.Errorf("told %+v", told)
	}
	claude.says(given("ended", 0.0), "unwatch_topic", given("session_key", key, "topic", "ci/one"))
	claude.says(given("ended", 1.0), "unwatch_topic", given("session_key", key))
	m.finish()
}

// A subscription for one message ends the command by itself.
func aTopicOnce(t *testing.T, a *app) {
	claude := a.agent(t, client{name: "claude-code"})
	m := monitoring(t, claude.done("watch_topic", given("topic", "ci/once", "once", true)))
	claude.says(emitted(1, false), "publish", given("topics", []string{"ci/once"}, "text", "one"))
	m.expect(message{Type: "event", Subject: "one"})
	m.finish()
}

// What was published before comes, if it is asked for. A subscription lives as long as it says.
func aTopicReplayed(t *testing.T, a *app) {
	claude := a.agent(t, client{name: "claude-code"})
	for _, said := range []string{"first", "second"} {
		claude.says(emitted(0, false), "publish", given("topics", []string{"ci/replayed"}, "text", said))
	}
	watching := claude.call("watch_topic", given("topic", "ci/replayed", "replay", "5m", "ttl", "1h"))
	expires, _ := structured(t, watching)["expires_at"].(string)
	if at, err := time.Parse(time.RFC3339, expires); err != nil || time.Until(at) > time.Hour || time.Until(at) < time.Hour-patience {
		t.Errorf("expires at %q, %v", expires, err)
	}
	m := monitoring(t, text(watching))
	m.expect(message{Type: "event", Subject: "first"})
	m.expect(message{Type: "event", Subject: "second"})
	claude.says(emitted(1, false), "publish", given("topics", []string{"ci/replayed"}, "text", "third"))
	m.expect(message{Type: "event", Subject: "third"})
}

// One subscription can be looked at, spoken to whatever its filter, and ended.
func oneSubscription(t *testing.T, a *app) {
	claude := a.agent(t, client{name: "claude-code"})
	watching := claude.call("watch_topic", given("topic", "ci/single", "keep", given("branch", "main")))
	id := structured(t, watching)["id"]
	status := func(status string, connected bool, via any) {
		t.Helper()
		claude.says(given("id", id, "topic", "ci/single", "status", status, "connected", connected, "via", via), "subscription_status", given("id", id))
	}
	one := given("id", id, "text", "for you", "data", given("branch", "next"), "event_id", "1")

	status("active", false, nil)
	claude.says(given("status", "queued"), "send", one)
	m := monitoring(t, text(watching))
	m.expect(message{Type: "event", Subject: "for you", Data: given("branch", "next")})
	status("active", true, "stream")
	claude.says(given("status", "delivered"), "send", one) // it counts once
	claude.says(given("status", "delivered"), "send", given("id", id, "text", "and again"))
	m.expect(message{Type: "event", Subject: "and again"})

	claude.says(given("ended", true), "end_subscription", given("id", id))
	if told := m.next(); told.Type != "ended" || !strings.Contains(told.Subject, "ci/single") {
		t.Errorf("told %+v", told)
	}
	m.finish()
	status("ended", false, nil)
	claude.says(given("status", "closed"), "send", given("id", id, "text", "too late"))
	claude.says(given("ended", false), "end_subscription", given("id", id))
}

// A service that only sends webhooks emits by an address of its own, until it is revoked.
func publishURLs(t *testing.T, a *app) {
	claude := a.agent(t, client{name: "claude-code"})
	asked := given("repo", "posted")
	watching := claude.done("watch", about("build.finished", asked))
	claude.done("watch_topic", given("topic", "ci/posted", "session_key", find(t, sessionForm, watching)))
	m := monitoring(t, watching)
	event, topic := claude.facts("publish_url", about("build.finished", asked)), claude.facts("topic_url", given("topic", "ci/posted"))
	if event["event"] != "build.finished" || topic["topic"] != "ci/posted" {
		t.Errorf("made %v and %v", event, topic)
	}
	for _, c := range []struct {
		url    any
		body   string
		status int
	}{
		{event["url"], `{"branch":"main","failures":4}`, http.StatusOK},
		{event["url"], `{"branch":"main"}`, http.StatusBadRequest},
		{topic["url"], `{"step":"lint"}`, http.StatusOK},
	} {
		if status := post(t, c.url, c.body); status != c.status {
			t.Errorf("posting %s: %d, want %d", c.body, status, c.status)
		}
	}
	if got := m.next(); !cmp.Equal(got.Data, given("branch", "main", "failures", 4.0)) || !strings.HasPrefix(got.Subject, "build.finished") {
		t.Errorf("emitted %+v", got)
	}
	if got := m.next(); !cmp.Equal(got.Data, given("step", "lint")) {
		t.Errorf("published %+v", got)
	}
	for _, made := range []map[string]any{event, topic} {
		claude.done("revoke_url", given("id", made["id"]))
		if status := post(t, made["url"], "{}"); status != http.StatusGone {
			t.Errorf("posting to what was revoked: %d", status)
		}
	}
}

func post(t *testing.T, url any, body string) (status int) {
	t.Helper()
	address, _ := url.(string)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
