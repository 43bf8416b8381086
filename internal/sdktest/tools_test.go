//go:build unix

package sdktest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ownTools are what the SDK adds to an app.
var ownTools = []string{"subscribe_events", "unsubscribe_events", "list_subscriptions"}

// eventsOfTheApp is how many there are.
const eventsOfTheApp = 4

var subscriptionForm = regexp.MustCompile(`- (sub_[a-z0-9]+): build\.finished \{"repo":"r1"\}, wakes a conversation, since \d{4}-\d\d-\d\d`)

func whoSpeaksEventsIsNotOfferedTheSubscribingTool(t *testing.T, a *app) {
	for _, c := range []struct {
		client client
		want   []string
	}{
		{client{name: "claude-code"}, ownTools},
		{client{name: "codex-mcp-client"}, ownTools},
		{client{name: "openai-mcp", user: "ada"}, ownTools[1:]},
		{client{name: "native-test", user: "ada", events: true}, ownTools[1:]},
	} {
		t.Run(c.client.name, func(t *testing.T) {
			agent := a.agent(t, c.client)
			var got []string
			for tool, err := range agent.Tools(t.Context(), nil) {
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
			listed, err := agent.native("events/list", &nativeParams{})
			if err != nil || len(listed.Events) != eventsOfTheApp {
				t.Errorf("%d events are listed, %v", len(listed.Events), err)
			}
		})
	}
}

func theSDKsOwnTools(t *testing.T, a *app) {
	leaver, bob := a.agent(t, client{name: "claude-code", user: "leaver"}), a.agent(t, client{name: "claude-code", user: "bob"})
	asked := given("repo", "r1")

	result := leaver.done("subscribe_events", about("build.finished", asked))
	if !strings.HasPrefix(result, `Subscribed to build.finished {"repo":"r1"}.`) {
		t.Errorf("subscribed: %s", result)
	}
	m := monitoring(t, result)
	leaver.build("r1", "main", 1)
	m.expect(built("r1", "main", 1))

	key := find(t, sessionForm, result)
	if again := leaver.done("subscribe_events", about("build.finished", asked, "session_key", key)); !strings.HasPrefix(again, `Already subscribed to build.finished {"repo":"r1"}: renewed.`) {
		t.Errorf("subscribed again: %s", again)
	}
	id := find(t, subscriptionForm, leaver.done("list_subscriptions", nil))
	if others := bob.done("list_subscriptions", nil); strings.Contains(others, id) {
		t.Errorf("another user sees: %s", others)
	}
	if others := bob.done("unsubscribe_events", given("id", id)); !strings.HasPrefix(others, "No subscription of yours") {
		t.Errorf("another user ends it: %s", others)
	}
	if ended := leaver.done("unsubscribe_events", given("id", id)); ended != "Stopped subscription "+id+"." {
		t.Errorf("ended by its id: %s", ended)
	}
	m.finish()

	leaver.done("subscribe_events", about("build.finished", asked, "session_key", key))
	if ended := leaver.done("unsubscribe_events", about("build.finished", asked, "session_key", key)); ended != `Stopped build.finished {"repo":"r1"}.` {
		t.Errorf("ended by its arguments: %s", ended)
	}
	if left := leaver.done("list_subscriptions", nil); left != "You have no subscriptions to this app's events." {
		t.Errorf("left: %s", left)
	}

	made := structured(t, leaver.call("watch", about("build.finished", asked, "session_key", key)))
	bob.says(given("ended", false), "end", given("event", "build.finished", "user", "bob", "id", made["id"]))
	leaver.says(given("ended", true), "end", given("event", "build.finished", "user", "leaver", "id", made["id"]))
	leaver.says(given("ended", false), "end", given("event", "build.finished", "user", "leaver", "id", made["id"]))
}

func theSDKsOwnToolsNeedAUser(t *testing.T, a *app) {
	nobody := a.agent(t, client{name: "claude-code"})
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"subscribe_events", about("review.requested", given("repo", "r1")), "review.requested is personal, and this app couldn't tell who you are: sign in to it first."},
		{"subscribe_events", about("nothing.such", nil), "This app offers no event named nothing.such."},
		{"subscribe_events", about("build.finished", given("repo", "Not An Id")), "Couldn't subscribe: arguments for build.finished: repo: a value that routes is made of a-z 0-9 . _ -"},
		{"unsubscribe_events", given("id", "sub_1"), "This app couldn't tell who you are, so it can't find that subscription: sign in to it first."},
		{"unsubscribe_events", nil, "Pass the event and its arguments, or a subscription's id from list_subscriptions."},
		{"list_subscriptions", nil, "This app couldn't tell who you are, so it can't list your subscriptions: sign in to it first."},
	} {
		if said := nobody.call(c.tool, c.arguments); !said.IsError || text(said) != c.want {
			t.Errorf("%s %v: %s\nwant: %s", c.tool, c.arguments, text(said), c.want)
		}
	}
}
