//go:build unix

package sdktest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// built is the message of a build that finished.
func built(repo, branch string, failures int) message {
	return message{Type: "event", Subject: fmt.Sprintf("%s: %d failures on %s", repo, failures, branch), Data: map[string]any{"branch": branch, "failures": float64(failures)}}
}

// build emits that a build has finished, and returns what became of it.
func (a *agent) build(repo, branch string, failures int, more ...any) (emitted map[string]any) {
	a.t.Helper()
	return a.facts("emit", about("build.finished", given("repo", repo), append(more, "payload", given("branch", branch, "failures", failures))...))
}

func emitted(matched int, duplicate bool) map[string]any {
	return map[string]any{"matched": float64(matched), "duplicate": duplicate}
}

// Claude Code's name reaches the core whatever version of MCP is spoken.
func claudeCodeIsWokenByItsMonitor(t *testing.T, a *app) {
	for repo, c := range map[string]client{
		"newest": {name: "claude-code"},
		"2025":   {name: "claude-code", protocol: "2025-11-25"},
		"person": {name: "claude-code", user: "ada"},
	} {
		t.Run(repo, func(t *testing.T) {
			t.Parallel()
			wakes(t, a.agent(t, c), repo)
		})
	}
}

// wakes subscribes a conversation, emits, and checks what its Monitor prints.
func wakes(t *testing.T, a *agent, repo string) {
	t.Helper()
	asked := given("repo", repo)
	watching := a.call("watch", about("build.finished", asked))
	made := structured(t, watching)
	if diff := cmp.Diff(map[string]any{"id": made["id"], "created": true, "harness": "claude-code", "via": "client"}, made); diff != "" {
		t.Fatalf("subscribed (-want +got):\n%s", diff)
	}
	m := monitoring(t, text(watching))
	once, again := a.build(repo, "main", 2, "id", repo), a.build(repo, "main", 2, "id", repo)
	if diff := cmp.Diff([]map[string]any{emitted(1, false), emitted(1, true)}, []map[string]any{once, again}); diff != "" {
		t.Errorf("emitted (-want +got):\n%s", diff)
	}
	first := m.expect(built(repo, "main", 2))
	a.build(repo, "next", 0)
	if second := m.expect(built(repo, "next", 0)); first == second {
		t.Error("two events have one id")
	}
	key := find(t, sessionForm, text(watching))
	if renewed := structured(t, a.call("watch", about("build.finished", asked, "session_key", key))); renewed["created"] != false || renewed["id"] != made["id"] {
		t.Error("the same conversation is subscribed twice")
	}
	a.says(given("ended", true), "unwatch", about("build.finished", asked, "session_key", key))
	m.finish() // nothing is left to wait for
	a.says(given("ended", false), "unwatch", about("build.finished", asked, "session_key", key))
}

func anOptionalArgumentFilters(t *testing.T, a *app) {
	claude := a.agent(t, client{name: "claude-code"})
	m := monitoring(t, claude.done("watch", about("build.finished", given("repo", "filtered", "branch", "main"))))
	for branch, matched := range map[string]int{"main": 1, "next": 0} {
		if diff := cmp.Diff(emitted(matched, false), claude.build("filtered", branch, 1)); diff != "" {
			t.Errorf("a build of %s (-want +got):\n%s", branch, diff)
		}
	}
	m.expect(built("filtered", "main", 1))
}

func aPersonalEventReachesItsUserAlone(t *testing.T, a *app) {
	ada, bob := a.agent(t, client{name: "claude-code", user: "ada"}), a.agent(t, client{name: "claude-code", user: "bob"})
	asked := given("repo", "r1")
	adas, bobs := monitoring(t, ada.done("watch", about("review.requested", asked))), monitoring(t, bob.done("watch", about("review.requested", asked)))
	for _, user := range []string{"ada", "bob"} {
		ada.says(emitted(1, false), "emit", about("review.requested", asked, "payload", given("title", "one for "+user), "to", user))
	}
	adas.expect(message{Type: "event", Subject: "Please review one for ada of r1", Data: given("title", "one for ada")})
	bobs.expect(message{Type: "event", Subject: "Please review one for bob of r1", Data: given("title", "one for bob")})
	posting := ada.facts("publish_url", about("review.requested", asked, "to", "bob"))
	if status := post(t, posting["url"], `{"title":"one that is posted"}`); status != http.StatusOK {
		t.Errorf("posting what is for bob: %d", status)
	}
	if got := bobs.next(); !cmp.Equal(got.Data, given("title", "one that is posted")) {
		t.Errorf("posted %+v", got)
	}
}

// Who may subscribe is the app's to say. What is deleted on delivery is delivered before.
func theAppAuthorizes(t *testing.T, a *app) {
	ada, bob := a.agent(t, client{name: "claude-code", user: "ada"}), a.agent(t, client{name: "claude-code", user: "bob"})
	m := monitoring(t, ada.done("subscribe_events", about("door.opened", given("owner", "ada"))))
	ada.says(emitted(1, false), "emit", about("door.opened", given("owner", "ada"), "payload", given("by", "a guest")))
	m.expect(message{Type: "event", Subject: "a guest opened the door of ada", Data: given("by", "a guest")})
	for _, door := range []string{"ada", "nobody"} { // for the second the app fails to say
		if said := bob.call("subscribe_events", about("door.opened", given("owner", door))); !said.IsError || text(said) != "You may not subscribe to door.opened with these arguments." {
			t.Errorf("another user, door of %s: %s", door, text(said))
		}
	}
	if said := fmt.Sprint(bob.facts("warned", nil)["warnings"]); !strings.Contains(said, "the door has no owner") {
		t.Errorf("the app is told %s", said)
	}
}

// Who cannot be woken finds its messages with the result of its next call. The app is warned of it, once.
func messagesAreHeldForOthers(t *testing.T, a *app) {
	stranger := a.agent(t, client{name: "an-agent-nobody-knows"})
	key := find(t, sessionForm, stranger.done("watch", about("build.finished", given("repo", "held"))))
	stranger.build("held", "main", 7)
	held := stranger.done("news", given("session_key", key))
	if !strings.HasPrefix(held, "Nothing else.") || !strings.Contains(held, "held: 7 failures on main") {
		t.Errorf("held: %s", held)
	}
	if again := stranger.done("news", given("session_key", key)); strings.Contains(again, "7 failures") {
		t.Errorf("held again: %s", again)
	}
	if said := fmt.Sprint(stranger.facts("warned", nil)["warnings"]); strings.Count(said, "couldn't tell which agent") != 1 {
		t.Errorf("the app is told %s", said)
	}
}

// An agent that gives its own id of its conversation needs no session key.
func aConversationHasTheAgentsOwnID(t *testing.T, a *app) {
	for _, c := range []struct {
		client                client
		hint, recognised, via string
	}{
		{client{name: "Cursor"}, "codex", "cursor", "client"}, // a hint changes nothing,
		{client{name: "mcp"}, "hermes", "hermes", "harness"},  // except for a name that several have
	} {
		t.Run(c.recognised, func(t *testing.T) {
			t.Parallel()
			agent := a.agent(t, c.client)
			asked := func(id string) map[string]any {
				return about("build.finished", given("repo", "of-"+c.recognised), "conversation_id", id, "harness", c.hint)
			}
			first := structured(t, agent.call("watch", asked("one")))
			want := map[string]any{"id": first["id"], "created": true, "harness": c.recognised, "via": c.via}
			if diff := cmp.Diff(want, first); diff != "" {
				t.Errorf("subscribed (-want +got):\n%s", diff)
			}
			want["created"] = false
			agent.says(want, "watch", asked("one"))
			if other := structured(t, agent.call("watch", asked("two"))); other["created"] != true || other["id"] == first["id"] {
				t.Errorf("another conversation: %v", other)
			}
		})
	}
}
