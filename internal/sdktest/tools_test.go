//go:build unix

package sdktest

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ownTools are what the SDK adds to an app.
var ownTools = []string{"subscribe_events", "unsubscribe_events", "list_subscriptions"}

var subscriptionForm = regexp.MustCompile(`- (sub_[a-z0-9]+): build\.finished \{"repo":"r1"\}, wakes a conversation, since \d{4}-\d\d-\d\d`)

func whoSpeaksEventsIsNotOfferedTheSubscribingTool(t *testing.T, endpoint string) {
	for _, c := range []struct {
		client client
		want   []string
	}{
		{client{name: "claude-code"}, ownTools},
		{client{name: "codex-mcp-client"}, ownTools},
		{client{name: "openai-mcp"}, ownTools[1:]},
		{client{name: "native-test", events: true}, ownTools[1:]},
	} {
		t.Run(c.client.name, func(t *testing.T) {
			a := c.client.overHTTP(t, endpoint)
			var got []string
			for tool, err := range a.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				if slices.Contains(ownTools, tool.Name) {
					got = append(got, tool.Name)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			listed, err := a.native("events/list", &nativeParams{})
			if err != nil || len(listed.Events) != 3 {
				t.Errorf("%d events are listed, %v", len(listed.Events), err)
			}
		})
	}
}

func theSDKsOwnTools(t *testing.T, endpoint string) {
	ada, bob := client{name: "claude-code", user: "lister"}.overHTTP(t, endpoint), client{name: "claude-code", user: "bob"}.overHTTP(t, endpoint)
	asked := map[string]any{"repo": "r1"}

	result := ada.done("subscribe_events", about("build.finished", asked))
	if !strings.HasPrefix(result, `Subscribed to build.finished {"repo":"r1"}.`) {
		t.Errorf("subscribed: %s", result)
	}
	m := monitoring(t, result)
	ada.facts("emit", about("build.finished", asked, map[string]any{"payload": map[string]any{"branch": "main", "failures": 1}}))
	m.expect(message{Type: "event", Subject: "r1: 1 failures on main", Data: map[string]any{"branch": "main", "failures": 1.0}})

	key := map[string]any{"session_key": find(t, sessionForm, result)}
	if again := ada.done("subscribe_events", about("build.finished", asked, key)); !strings.HasPrefix(again, `Already subscribed to build.finished {"repo":"r1"}: renewed.`) {
		t.Errorf("subscribed again: %s", again)
	}
	id := find(t, subscriptionForm, ada.done("list_subscriptions", nil))
	if others := bob.done("list_subscriptions", nil); strings.Contains(others, id) {
		t.Errorf("another user sees: %s", others)
	}
	if others := bob.done("unsubscribe_events", map[string]any{"id": id}); !strings.HasPrefix(others, "No subscription of yours") {
		t.Errorf("another user ends it: %s", others)
	}
	if ended := ada.done("unsubscribe_events", map[string]any{"id": id}); ended != "Stopped subscription "+id+"." {
		t.Errorf("ended by its id: %s", ended)
	}
	m.finish()

	ada.done("subscribe_events", about("build.finished", asked, key))
	if ended := ada.done("unsubscribe_events", about("build.finished", asked, key)); ended != `Stopped build.finished {"repo":"r1"}.` {
		t.Errorf("ended by its arguments: %s", ended)
	}
	if left := ada.done("list_subscriptions", nil); left != "You have no subscriptions to this app's events." {
		t.Errorf("left: %s", left)
	}
}

func topics(t *testing.T, endpoint string) {
	a := client{name: "claude-code"}.overHTTP(t, endpoint)
	first := a.call("watch_topic", map[string]any{"topic": "ci/one", "keep": map[string]any{"branch": "main"}})
	if made := structured(t, first); made["topic"] != "ci/one" || made["once"] != false {
		t.Fatalf("subscribed: %v", made)
	}
	key := find(t, sessionForm, text(first))
	a.done("watch_topic", map[string]any{"topic": "ci/two", "session_key": key})
	m := monitoring(t, text(first))

	publish := func(topic, branch, id string) map[string]any {
		return a.facts("publish", map[string]any{"topics": []string{topic, "ci/two"}, "text": "CI of " + branch, "data": map[string]any{"branch": branch}, "id": id})
	}
	want := map[string]any{"matched": 1.0, "duplicate": false}
	if diff := cmp.Diff(want, publish("ci/one", "main", "1")); diff != "" {
		t.Errorf("published to two topics of one conversation (-want +got):\n%s", diff)
	}
	m.expect(message{Type: "event", Subject: "CI of main", Data: map[string]any{"branch": "main"}})
	want["duplicate"] = true
	if diff := cmp.Diff(want, publish("ci/one", "main", "1")); diff != "" {
		t.Errorf("published again (-want +got):\n%s", diff)
	}
	if done := a.facts("publish", map[string]any{"topics": []string{"ci/one"}, "text": "filtered", "data": map[string]any{"branch": "next"}}); done["matched"] != 0.0 {
		t.Errorf("what the filter keeps away matched %v", done["matched"])
	}

	status := map[string]any{"topic": "ci/one", "subscriptions": 1.0, "connected": 1.0,
		"via": map[string]any{"stream": 1.0, "poll": 0.0, "hooks": 0.0, "webhook": 0.0}}
	if diff := cmp.Diff(status, a.facts("topic_status", map[string]any{"topic": "ci/one"})); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if done := a.facts("close_topic", map[string]any{"topic": "ci/one"}); done["closed"] != 1.0 {
		t.Errorf("closed %v", done["closed"])
	}
	if told := m.next(); told.Type != "ended" || !strings.Contains(told.Subject, "ci/one") {
		t.Errorf("told %+v", told)
	}
	if done := a.facts("unwatch_topic", map[string]any{"session_key": key}); done["ended"] != 1.0 {
		t.Errorf("ended %v", done["ended"])
	}
	m.finish()
}

// A subscription for one message ends the command by itself.
func aTopicOnce(t *testing.T, endpoint string) {
	a := client{name: "claude-code"}.overHTTP(t, endpoint)
	m := monitoring(t, a.done("watch_topic", map[string]any{"topic": "ci/once", "once": true}))
	a.facts("publish", map[string]any{"topics": []string{"ci/once"}, "text": "one"})
	m.expect(message{Type: "event", Subject: "one"})
	m.finish()
}

// Who cannot be woken finds its messages with the result of its next call.
func messagesAreHeldForOthers(t *testing.T, endpoint string) {
	a := client{name: "an-agent-nobody-knows"}.overHTTP(t, endpoint)
	key := find(t, sessionForm, a.done("watch", about("build.finished", map[string]any{"repo": "held"})))
	a.facts("emit", about("build.finished", map[string]any{"repo": "held"}, map[string]any{"payload": map[string]any{"branch": "main", "failures": 7}}))
	held := a.done("news", map[string]any{"session_key": key})
	if !strings.HasPrefix(held, "Nothing else.") || !strings.Contains(held, "held: 7 failures on main") {
		t.Errorf("held: %s", held)
	}
	if again := a.done("news", map[string]any{"session_key": key}); strings.Contains(again, "7 failures") {
		t.Errorf("held again: %s", again)
	}
}

// A service that only sends webhooks emits by an address of its own, until it is revoked.
func publishURLs(t *testing.T, endpoint string) {
	a := client{name: "claude-code"}.overHTTP(t, endpoint)
	asked := map[string]any{"repo": "posted"}
	watching := a.done("watch", about("build.finished", asked))
	a.done("watch_topic", map[string]any{"topic": "ci/posted", "session_key": find(t, sessionForm, watching)})
	m := monitoring(t, watching)
	event, topic := a.facts("publish_url", about("build.finished", asked)), a.facts("topic_url", map[string]any{"topic": "ci/posted"})
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
	if got := m.next(); !cmp.Equal(got.Data, map[string]any{"branch": "main", "failures": 4.0}) || !strings.HasPrefix(got.Subject, "build.finished") {
		t.Errorf("emitted %+v", got)
	}
	if got := m.next(); !cmp.Equal(got.Data, map[string]any{"step": "lint"}) {
		t.Errorf("published %+v", got)
	}
	for _, made := range []map[string]any{event, topic} {
		a.done("revoke_url", map[string]any{"id": made["id"]})
		if status := post(t, made["url"], "{}"); status != http.StatusGone {
			t.Errorf("posting to what was revoked: %d", status)
		}
	}
	expectRefusal(t, a.call("publish_url", about("build.finished", map[string]any{"repo": "Not An Id"})), refused("WakeshiftError", "bad_arguments", 400))
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
