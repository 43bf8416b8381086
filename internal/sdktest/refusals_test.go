//go:build unix

package sdktest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/credential"
)

// codes are those that the published SDK names and an app can meet. docs/wire.md has the two that the core never answers.
var codes = []string{"bad_arguments", "bad_payload", "bad_request", "bad_response", "callback_failed", "no_grant", "private_topic",
	"subscription_limit", "unknown_event", "unknown_session", "unknown_subscription", "unknown_workspace", "unreachable", "unsupported",
	"workspace_limit"}

// theSDKRefuses has what does not reach the core.
func theSDKRefuses(t *testing.T, a *app) {
	claude := a.agent(t, client{name: "claude-code"})
	build, review := given("branch", "main", "failures", 1), given("title", "one")
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      map[string]any
	}{
		{"watch", about("build.finished", given()), refusedBySDK("ArgsError")},
		{"emit", about("build.finished", given("repo", 7), "payload", build), refusedBySDK("ArgsError")},
		{"publish_url", about("build.finished", given()), refusedBySDK("ArgsError")},
		{"emit", about("build.finished", given("repo", "r1"), "payload", given()), refused("bad_payload", 400)},
		{"emit", about("build.finished", given("repo", "r1"), "payload", build, "to", "ada"), refused("bad_arguments", 400)},
		{"emit", about("review.requested", given("repo", "r1"), "payload", review), refused("bad_arguments", 400)},
		{"publish_url", about("review.requested", given("repo", "r1")), refused("bad_arguments", 400)},
		{"watch", about("review.requested", given("repo", "r1")), refused("bad_arguments", 400)},
	} {
		claude.refuses(c.want, c.tool, c.arguments)
	}
}

// theCoreRefuses has what the core refuses and the SDK raises.
func theCoreRefuses(t *testing.T, a *app) {
	claude := a.agent(t, client{name: "claude-code"})
	emit := func(name string, arguments, payload map[string]any) map[string]any {
		return given("method", "POST", "path", "/events/emit", "body", given("name", name, "arguments", arguments, "payload", payload, "text", "x"))
	}
	repo, build := given("repo", "r1"), given("branch", "main", "failures", 1)
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		code      string
		status    int
		says      string // somewhere in its words
	}{
		{"publish", given("topics", []string{"a b"}, "text", "x"), "bad_request", 400, "topic"},
		{"publish", given("topics", []string{}, "text", "x"), "bad_request", 400, "topics: between 1 and 100"},
		{"publish", given("topics", []string{"ci/one"}, "text", ""), "bad_request", 400, "event.text"},
		{"publish", given("topics", []string{"ci/one"}, "text", "x", "data", given("long", strings.Repeat("x", 3<<20))), "too_large", 413, "2097152 bytes"},
		{"watch_topic", given("topic", "ci/one", "ttl", 0), "bad_request", 400, "ttl"},
		{"watch_topic", given("topic", "ci/one", "replay", "yesterday"), "bad_request", 400, "replay"},
		{"watch_topic", given("topic", "u/bob/ci"), "private_topic", 403, "that user's own"},
		{"watch", about("build.finished", given("repo", "Not An Id")), "bad_arguments", 400, "repo: a value that routes"},
		{"emit", about("build.finished", given("repo", "Not An Id"), "payload", build), "bad_arguments", 400, "repo: a value that routes"},
		{"publish_url", about("build.finished", given("repo", "Not An Id")), "bad_arguments", 400, "repo: a value that routes"},
		{"request", emit("build.finished", given("repo", "r1", "colour", "red"), build), "bad_arguments", 400, "colour"},
		{"request", emit("build.finished", repo, given("branch", "main")), "bad_payload", 400, "failures"},
		{"request", emit("build.finished", repo, given("branch", strings.Repeat("x", 300_000), "failures", 1)), "bad_payload", 400, "262144"},
		{"request", emit("nothing.such", repo, build), "unknown_event", 404, "nothing.such"},
		{"watch", about("build.finished", repo, "session_key", "wsk_made_up"), "unknown_session", 404, "session"},
		{"subscription_status", given("id", "sub_nothing"), "unknown_subscription", 404, "sub_nothing"},
		{"send", given("id", "sub_nothing", "text", "x"), "unknown_subscription", 404, "sub_nothing"},
		{"end_subscription", given("id", "sub_nothing"), "unknown_subscription", 404, "sub_nothing"},
		{"revoke_url", given("id", "url_nothing"), "unknown_publish_url", 404, "url_nothing"},
		{"request", given("method", "POST", "path", "/nothing"), "not_found", 404, "docs/wire.md"},
		{"request", given("method", "GET", "path", "/events/emit"), "method_not_allowed", 405, "POST"},
	} {
		if said := claude.refuses(refused(c.code, c.status), c.tool, c.arguments); !strings.Contains(said, c.says) {
			t.Errorf("%s says %q, want %q in it", c.tool, said, c.says)
		}
	}
}

// A session key is good for the client it was given to. The SDK knows other_client for one of another client, and
// unknown_conversation for an id that the core never saw: the first is unknown here as well, so that nobody finds out that the
// key exists, and the second names no conversation, as it does for a new one.
func whatTheCoreNeverRefusesWith(t *testing.T, a *app) {
	cursor, claude := a.agent(t, client{name: "Cursor"}), a.agent(t, client{name: "claude-code"})
	asked := given("repo", "hers")
	key := find(t, sessionForm, cursor.done("watch", about("build.finished", asked)))
	unknown := refused("unknown_session", 404)
	claude.refuses(unknown, "watch", about("build.finished", asked, "session_key", key))
	claude.refuses(unknown, "unwatch", about("build.finished", asked, "session_key", key))
	claude.refuses(unknown, "watch_topic", given("topic", "ci/hers", "session_key", key))
	claude.refuses(unknown, "unwatch_topic", given("session_key", key))
	claude.refuses(unknown, "news", given("session_key", key))

	cursor.says(given("ended", false), "unwatch", about("build.finished", asked, "conversation_id", "never seen"))
	if said := cursor.done("news", given("conversation_id", "never seen")); said != "Nothing else." {
		t.Errorf("news of a conversation that the core never saw: %s", said)
	}
}

func limits(t *testing.T, a *app) {
	claude := a.agent(t, client{name: "claude-code"})
	h := newHook(t)
	who := given("client", "native-test", "user", "greedy")
	topic := func(n int) map[string]any {
		return given("method", "POST", "path", "/topics/subscribe", "body", given("call", who, "topic", fmt.Sprintf("ci/greed-%d", n)))
	}
	webhook := func(n int) map[string]any { return h.request(who, given("place", fmt.Sprintf("greed-%d", n))) }
	for n := range greed {
		claude.facts("request", topic(n))
		claude.facts("request", webhook(n))
	}
	claude.refuses(refused("subscription_limit", 429), "request", topic(greed))
	claude.refuses(refused("subscription_limit", 429), "request", webhook(greed))
}

// The manifest has the events of the app beside what else the app says of itself.
func theManifest(t *testing.T, a *app) {
	claude := a.agent(t, client{name: "claude-code"})
	scope := map[string]any{"scope": []any{"builds"}}
	kept, _ := claude.facts("publish_manifest", given("manifest", given("agent", scope)))["kept"].(map[string]any)
	if diff := cmp.Diff(scope, kept["agent"]); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if events, _ := kept["events"].([]any); len(events) != eventsOfTheApp {
		t.Errorf("kept %d events: %v", len(events), events)
	}
	claude.refuses(refused("bad_request", 400), "publish_manifest", given("manifest", given("events", []any{given("name", "Not A Name")})))
}

// An event is unknown once the app has told the core that it has none.
func TestAnUnknownEvent(t *testing.T) {
	t.Parallel()
	for database, open := range databases {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, open, core.Limits{})
			claude := overStdio(t, n, n.newKey("app")).agent(t, client{name: "claude-code"})
			asked := given("repo", "r1")
			m := monitoring(t, claude.done("watch", about("build.finished", asked)))
			claude.says(given("kept", given("events", []any{})), "publish_manifest", given("manifest", given("events", []any{})))
			if told := m.next(); told.Type != "ended" {
				t.Errorf("the conversation is told %+v", told)
			}
			m.finish()
			claude.refuses(refused("unknown_event", 404), "watch", about("build.finished", asked))
			claude.refuses(refused("unknown_event", 404), "emit", about("build.finished", asked, "payload", given("branch", "main", "failures", 1)))
		})
	}
}

// A key is of an app, which the older form names itself.
func keys(t *testing.T, a *app) {
	claude := a.agent(t, client{name: "claude-code"})
	claude.says(given("id", "app", "name", "app", "app_id", "app"), "which_app", nil)
	text := a.node.newKey("second")
	key, err := credential.ParseAppKey(text)
	if err != nil {
		t.Fatal(err)
	}
	second := given("id", "second", "names_its_app", false, "app_id", "second", "mode", nil, "key_id", credential.KeyID(key.PublicKey()), "key_name", "its key")
	claude.says(second, "another_app", given("key", text))
	seed := base64.RawURLEncoding.EncodeToString(key.PrivateKey().Seed())
	second["names_its_app"] = true
	for _, mode := range []string{"live", "test"} {
		second["mode"] = mode
		claude.says(second, "another_app", given("key", "wst_"+mode+"_second_"+seed))
	}
	claude.refuses(refused("unauthorized", 401), "another_app", given("key", "wst_live_app_"+seed))
	other := byte('z')
	if text[len(text)-1] == other {
		other = 'y'
	}
	mistyped := text[:len(text)-1] + string(other)
	if said := claude.refuses(refusedBySDK("ValueError"), "another_app", given("key", mistyped)); strings.Contains(said, mistyped) {
		t.Errorf("the error repeats the key: %s", said)
	}
}

// anotherCore has what an app sees whose WAKESHIFT_CORE is wrong, or whose core has had enough of it.
func anotherCore(t *testing.T, a *app) {
	claude := a.agent(t, client{name: "claude-code"})
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>Hello</html>") }))
	t.Cleanup(page.Close)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	other := newNode(t, databases["SQLite"], core.Limits{AppRequests: 1})
	for name, c := range map[string]struct {
		url     string
		timeout float64
		want    map[string]any
	}{
		"nobody is there": {closed.URL, 20, refused("unreachable", 0)},
		"nobody answers":  {silent.URL, 0.1, refused("unreachable", 0)},
		"a web page":      {page.URL, 20, refused("bad_response", 200)},
		"another core":    {other.URL(), 20, refused("unauthorized", 401)},
		"a wrong path":    {a.node.URL() + "/elsewhere", 20, refused("not_found", 404)},
	} {
		said := claude.refuses(c.want, "another_app", given("key", a.key, "core", c.url, "timeout", c.timeout))
		if strings.Contains(said, a.key) {
			t.Errorf("%s: the error repeats the key", name)
		}
		if c.want["code"] == "unreachable" && !strings.Contains(said, c.url) {
			t.Errorf("%s: the error does not name the address: %s", name, said)
		}
	}
	claude.refuses(refused("rate_limited", 429), "hurry", given("key", other.newKey("hasty"), "core", other.URL(), "times", 10))
}
