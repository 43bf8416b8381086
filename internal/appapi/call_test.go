package appapi_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The calls that take a call all hold it to the same limits: these three stand for the ways in which they do.
var calling = []struct{ path, rest string }{
	{"/event-subscriptions", `,"name":"crawl.finished","arguments":{"job":"j"}`},
	{"/topics/subscribe", `,"topic":"x"`},
	{"/topics/annotate", ``},
}

func TestTheCallsLimits(t *testing.T) {
	t.Parallel()
	l := setup(t)
	list := func(n int, name string) string {
		return strings.TrimSuffix(strings.Repeat(quote(name)+",", n), ",")
	}
	meta := func(bytes int) string { return `{"x":"` + long(bytes-len(`{"x":""}`)) + `"}` }
	for name, c := range map[string]struct{ most, over, says string }{
		"client":         {`"client":"` + strings.Repeat("é", 200) + `"`, `"client":"` + strings.Repeat("é", 201) + `"`, "call.client: at most 200 characters"},
		"client_version": {`"client_version":"` + long(100) + `"`, `"client_version":"` + long(101) + `"`, "call.client_version: at most 100 characters"},
		"extensions":     {`"extensions":[` + list(50, "x") + `]`, `"extensions":[` + list(51, "x") + `]`, "call.extensions: at most 50"},
		"an extension":   {`"extensions":["x","` + long(200) + `"]`, `"extensions":["x","` + long(201) + `"]`, "call.extensions[1]: at most 200 characters"},
		"user":           {`"user":"` + long(256) + `"`, `"user":"` + long(257) + `"`, "call.user: at most 256 characters"},
		"user_agent":     {`"user_agent":"` + long(1000) + `"`, `"user_agent":"` + long(1001) + `"`, "call.user_agent: at most 1000 characters"},
		"conversation":   {`"conversation":"` + long(256) + `"`, `"conversation":"` + long(257) + `"`, "call.conversation: at most 256 characters"},
		"harness":        {`"harness":"` + long(100) + `"`, `"harness":"` + long(101) + `"`, "call.harness: at most 100 characters"},
		"tool":           {`"tool":"` + long(200) + `"`, `"tool":"` + long(201) + `"`, "call.tool: at most 200 characters"},
		"meta":           {`"meta":` + meta(64<<10), `"meta":` + meta(64<<10+1), "call.meta: at most 65536 bytes"},
		"meta's type":    {`"meta":null`, `"meta":"x"`, "call.meta: must be an object"},
		"meta a list":    {`"meta":{}`, `"meta":[{}]`, "call.meta: must be an object"},
		"a client's NUL": {`"client":""`, `"client":"a\u0000b"`, "call.client: must not contain control characters"},
		"a line's end":   {`"conversation":"a b"`, `"conversation":"\u2028"`, "call.conversation: must not contain control characters"},
		"client's type":  {`"client":null`, `"client":7`, "call.client: must be a string"},
		"a list's type":  {`"extensions":null`, `"extensions":"x"`, "call.extensions: must be an array"},
		"a name's type":  {`"extensions":[]`, `"extensions":["x",7]`, "call.extensions[1]: must be a string"},
	} {
		for _, to := range calling {
			l.app.post(t, to.path, `{"call":{`+c.most+`,"more":{"x":1}}`+to.rest+`}`)
			if got := l.app.send(t, "POST", to.path, `{"call":{`+c.over+`}`+to.rest+`}`).says(t); got != "bad_request: "+c.says {
				t.Errorf("%s: %s: %s", to.path, name, got)
			}
		}
	}
}

func TestWhoIsCalling(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for call, want := range map[string]members{
		`"client":"claude-code","user":"ada"`:                     {"harness": "claude-code", "via": "client"},
		`"client":"Visual Studio Code - Insiders"`:                {"harness": "vscode", "via": "client"},
		`"client":"CURSOR"`:                                       {"harness": "cursor", "via": "client"},
		`"client":"mcp"`:                                          {},
		`"client":"mcp","harness":"hermes"`:                       {"harness": "hermes", "via": "harness", "claimed": "hermes"},
		`"user_agent":"claude-code/2.1.0 (external, cli)"`:        {"harness": "claude-code", "via": "user_agent"},
		`"user_agent":"not-claude-code/1.0"`:                      {},
		`"meta":{"x-codex-turn-metadata":{"thread_id":"t"}}`:      {"harness": "codex", "via": "meta"},
		`"client":"claude-code","harness":"chatgpt"`:              {"harness": "claude-code", "via": "client", "claimed": "chatgpt"},
		`"client":"some-client","harness":"my-own-agent"`:         {"claimed": "my-own-agent"},
		`"client":"some-client","extensions":["x"],"tool":"look"`: {},
		``: {},
	} {
		for _, to := range calling {
			answer := l.app.post(t, to.path, `{"call":{`+call+`}`+to.rest+`}`)
			if diff := cmp.Diff(map[string]any(want), answer.at("agent")); diff != "" {
				t.Errorf("%s: %s: %s", to.path, call, diff)
			}
		}
	}
}

// A session key opens its conversation to the same app, client and user; to anybody else it is as unknown as any other text.
func TestASessionKeyBelongsToItsConversation(t *testing.T) {
	t.Parallel()
	l := setup(t)
	made := l.app.post(t, "/event-subscriptions", subscribeJob(`"client":"codex-mcp-client","user":"ada"`, "j"))
	key := made["session"].(string)
	unknown := l.app.send(t, "POST", "/topics/annotate", `{"call":{"session":"wsk_unknown"}}`)
	for name, c := range map[string]struct{ call, session string }{
		"another client":    {`"client":"some-client","user":"ada"`, key},
		"a claim":           {`"client":"some-client","user":"ada","harness":"codex"`, key},
		"another user":      {`"client":"codex-mcp-client","user":"bob"`, key},
		"nobody":            {`"client":"codex-mcp-client"`, key},
		"a key and more":    {`"client":"codex-mcp-client","user":"ada"`, key + "a"},
		"a key in capitals": {`"client":"codex-mcp-client","user":"ada"`, strings.ToUpper(key)},
		"another prefix":    {`"client":"codex-mcp-client","user":"ada"`, "wss_" + strings.TrimPrefix(key, "wsk_")},
		"a key with NUL":    {`"client":"codex-mcp-client","user":"ada"`, key[:40] + "\x00"},
	} {
		got := l.app.send(t, "POST", "/topics/annotate", `{"call":{`+c.call+`,"session":`+quote(c.session)+`}}`)
		if diff := cmp.Diff(string(unknown.body), string(got.body)); diff != "" || got.status != unknown.status {
			t.Errorf("%s: %d %s", name, got.status, diff)
		}
	}
	again := l.app.post(t, "/event-subscriptions", subscribeJob(`"client":"codex-mcp-client","user":"ada","session":"`+key+`"`, "j"))
	if again.at("event_subscription", "created") != false || again["session"] != key {
		t.Errorf("the same conversation got %v", again)
	}
}
