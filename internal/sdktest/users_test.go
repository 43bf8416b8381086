//go:build unix

package sdktest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/rouse-dev/rouse/internal/wake"
)

func aUserIsUnsubscribed(t *testing.T, a *app) {
	leaver := a.agent(t, client{name: "claude-code", user: "leaver"})
	for _, topic := range []string{"ci/left", "ci/left", "ci/other"} { // in a conversation each
		leaver.done("watch_topic", given("topic", topic))
	}
	leaver.says(given("ended", 2.0), "unsubscribe_user", given("user", "leaver", "topic", "ci/left"))
	leaver.says(given("ended", 1.0), "unsubscribe_user", given("user", "leaver"))
	leaver.says(given("ended", 0.0), "unsubscribe_user", given("user", "leaver"))
}

// Of a user who is forgotten nothing is left, and nobody knows the keys any more.
func aUserIsForgotten(t *testing.T, a *app) {
	gone := a.agent(t, client{name: "claude-code", user: "gone"})
	watching := gone.done("watch", about("review.requested", given("repo", "gone")))
	key := find(t, sessionForm, watching)
	gone.done("watch_topic", given("topic", "u/gone/notes", "session_key", key))
	m := monitoring(t, watching)
	gone.says(emitted(1, false), "publish", given("topics", []string{"u/gone/notes"}, "text", "private"))
	m.expect(message{Type: "event", Subject: "private"})
	url := gone.facts("publish_url", about("review.requested", given("repo", "gone"), "to", "gone"))["url"]
	place := gone.facts("workspace", given("user", "gone", "name", "Of one who goes"))["workspace"]
	agent := gone.facts("add_agent", given("workspace", place, "client", "claude-code"))["agent"]

	gone.says(given("forgotten", true), "forget_user", given("user", "gone"))
	m.finish()
	gone.refuses(refused("unknown_session", 404), "news", given("session_key", key))
	gone.refuses(refused("unknown_workspace", 404), "check_agent", given("workspace", place, "agent", agent))
	gone.says(emitted(0, false), "publish", given("topics", []string{"u/gone/notes"}, "text", "nobody hears it"))
	if status := post(t, url, `{"title":"late"}`); status != http.StatusNotFound {
		t.Errorf("posting to what was the user's: %d", status)
	}
	if again := gone.facts("workspace", given("user", "gone", "name", "Of one who is back"))["workspace"]; again == place {
		t.Error("the workspace is there still")
	}
	gone.says(given("forgotten", true), "forget_user", given("user", "gone")) // what came since
	gone.says(given("forgotten", false), "forget_user", given("user", "gone"))
}

func workspaces(t *testing.T, a *app) {
	claude := a.agent(t, client{name: "claude-code"})
	place := claude.facts("workspace", given("user", "tenant", "name", "Tenant & Co"))["workspace"]
	claude.says(given("workspace", place), "workspace", given("user", "tenant", "name", "Renamed"))
	for client, agent := range map[string]string{"Claude Code": "claude-code", "codex-mcp-client": "codex", "Ägent (beta) 7": "gent"} {
		added := claude.facts("add_agent", given("workspace", place, "client", client))
		if added["agent"] != agent {
			t.Errorf("%s is called %v, want %s", client, added["agent"], agent)
		}
		claude.says(added, "add_agent", given("workspace", place, "client", client))
		claude.says(given("agent", agent), "check_agent", given("workspace", place, "agent", agent))
	}
	claude.refuses(refused("no_grant", 403), "check_agent", given("workspace", place, "agent", "nobody / here"))
	claude.refuses(refused("unknown_workspace", 404), "check_agent", given("workspace", "ws_nothing", "agent", "codex"))
	claude.refuses(refused("unknown_workspace", 404), "add_agent", given("workspace", "ws_nothing", "client", "codex"))
	claude.refuses(refused("bad_request", 400), "workspace", given("user", "", "name", "Nobody's"))

	full := claude.facts("workspace", given("user", "crowded", "name", "Crowded"))["workspace"].(string)
	for i := range wake.MaxGrants {
		if _, err := a.node.Core().AddAgent(t.Context(), wake.App{ID: "app"}, full, fmt.Sprintf("agent-%d", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	claude.refuses(refused("workspace_limit", 429), "add_agent", given("workspace", full, "client", "codex"))
}
