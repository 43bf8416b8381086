package appapi_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Two apps with the same events, users and threads know nothing of each other.
func TestAppsAreApart(t *testing.T) {
	t.Parallel()
	l := setup(t)
	mine, theirs := l.app, l.another()
	const call = `"client":"Cursor","user":"ada","conversation":"chat-1"`
	made := mine.post(t, "/event-subscriptions", subscribeJob(call, "j"))
	mine.post(t, "/topics/subscribe", `{"call":{`+call+`},"topic":"news"}`)
	id, session := made.at("event_subscription", "id").(string), made["session"].(string)
	withKey := `{"call":{"client":"Cursor","user":"ada","session":"` + session + `"}`
	byThread := `{"call":{` + call + `}`
	const unknownSession = "unknown_session: session: there is no conversation of this app, client and user with that key"

	for name, c := range map[string]struct{ path, body, field string }{
		"emitting":                   {"/events/emit", emitJob("j", "theirs"), "matched"},
		"publishing":                 {"/topics/publish", `{"topics":["news"],"event":{"text":"theirs"}}`, "matched"},
		"listing":                    {"/event-subscriptions/list", `{"user":"ada"}`, "subscriptions"},
		"ending by id":               {"/event-subscriptions/end", `{"user":"ada","id":"` + id + `"}`, "ended"},
		"closing a topic":            {"/topics/close", `{"topic":"news"}`, "closed"},
		"unsubscribing a user":       {"/topics/unsubscribe", `{"user":"ada"}`, "unsubscribed"},
		"unsubscribing by thread":    {"/topics/unsubscribe", byThread + `}`, "unsubscribed"},
		"unsubscribing from a crawl": {"/event-subscriptions/unsubscribe", subscribeJob(call, "j"), "ended"},
	} {
		got := theirs.post(t, c.path, c.body)[c.field]
		if diff := cmp.Diff(map[string]any{"matched": 0.0, "subscriptions": []any{}, "ended": false, "closed": 0.0, "unsubscribed": 0.0}[c.field], got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for path, body := range map[string]string{
		"/topics/annotate":                 withKey + `}`,
		"/topics/unsubscribe":              withKey + `}`,
		"/topics/subscribe":                withKey + `,"topic":"news"}`,
		"/event-subscriptions":             withKey + `,"name":"crawl.finished","arguments":{"job":"j"}}`,
		"/event-subscriptions/unsubscribe": withKey + `,"name":"crawl.finished","arguments":{"job":"j"}}`,
	} {
		if got := theirs.send(t, "POST", path, body).says(t); got != unknownSession {
			t.Errorf("%s with this app's session key: %s", path, got)
		}
	}
	if got := theirs.send(t, "GET", "/topics/status?topic=news", "").good(t); got["subscriptions"] != 0.0 {
		t.Errorf("status: %v", got)
	}
	theirs.send(t, "PUT", "/manifest", `{"events":[]}`).good(t)

	// After all that everything here is as it was.
	if got := mine.post(t, "/events/emit", emitJob("j", "mine")); got["matched"] != 1.0 {
		t.Errorf("emitting here: %v", got)
	}
	if got := mine.post(t, "/topics/publish", `{"topics":["news"],"event":{"text":"mine too"}}`); got["matched"] != 1.0 {
		t.Errorf("publishing here: %v", got)
	}
	text := mine.post(t, "/topics/annotate", withKey+`}`)["text"].(string)
	if !strings.Contains(text, "- mine ") || !strings.Contains(text, "- mine too ") || strings.Contains(text, "theirs") {
		t.Errorf("the conversation got %s", text)
	}
}

func TestIDsAreApart(t *testing.T) {
	t.Parallel()
	l := setup(t)
	other := l.another()
	emit := strings.TrimSuffix(emitJob("j", "t"), "}") + `,"id":"one"}`
	const publish = `{"topics":["x"],"event":{"text":"t","id":"one"}}`
	for _, app := range []caller{l.app, other} {
		for path, body := range map[string]string{"/events/emit": emit, "/topics/publish": publish} {
			if got := app.post(t, path, body); got["duplicate"] != nil {
				t.Errorf("%s by %s is called a duplicate", path, app.id)
			}
			if got := app.post(t, path, body); got["duplicate"] != true {
				t.Errorf("%s by %s again is called none", path, app.id)
			}
		}
	}
}

// One Codex thread that uses two apps is two conversations.
func TestThreadsAreApart(t *testing.T) {
	t.Parallel()
	l := setup(t)
	other := l.another()
	const body = `{"call":{"client":"codex-mcp-client","meta":{"x-codex-turn-metadata":{"thread_id":"t1"}}},"topic":"news"}`
	first, second := l.app.post(t, "/topics/subscribe", body), other.post(t, "/topics/subscribe", body)
	if first["session"] == second["session"] {
		t.Error("the same session key")
	}
	if again := l.app.post(t, "/topics/subscribe", body); again["session"] != first["session"] {
		t.Error("the same thread is another conversation")
	}
	if got := l.app.post(t, "/topics/publish", `{"topics":["news"],"event":{"text":"t"}}`); got["matched"] != 1.0 {
		t.Errorf("matched %v", got)
	}
}
