package harness_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/wake"
)

func TestRecogniseClientNames(t *testing.T) {
	t.Parallel()
	for _, h := range harness.Table() {
		if h.Shared {
			continue
		}
		for _, client := range h.Clients {
			call := wake.Call{Client: client, Meta: json.RawMessage(`{"x-codex-turn-metadata":{"thread_id":"t"}}`)}
			want := harness.Agent{Harness: h.ID, Via: "client", Path: h.Path}
			if diff := cmp.Diff(want, harness.Recognise(call)); diff != "" {
				t.Errorf("%s: %s", client, diff)
			}
		}
	}
}

func TestRecogniseOtherSignals(t *testing.T) {
	t.Parallel()
	codex := json.RawMessage(`{"x-codex-turn-metadata":{"thread_id":"t"}}`)
	for name, test := range map[string]struct {
		call wake.Call
		want harness.Agent
	}{
		"nobody":                 {wake.Call{}, harness.Agent{Path: harness.PathHeld}},
		"unknown":                {wake.Call{Client: "some-client"}, harness.Agent{Path: harness.PathHeld}},
		"any case":               {wake.Call{Client: "CLINE"}, harness.Agent{Harness: "cline", Via: "client", Path: harness.PathHeld}},
		"user agent":             {wake.Call{UserAgent: "claude-code/2.1.0 (external, cli)"}, harness.Agent{Harness: "claude-code", Via: "user_agent", Path: harness.PathMonitor}},
		"chatgpt user agent":     {wake.Call{UserAgent: "openai-mcp/1.0.0"}, harness.Agent{Harness: "chatgpt", Via: "user_agent", Path: harness.PathVoucher}},
		"mentioned user agent":   {wake.Call{UserAgent: "x claude-code/2"}, harness.Agent{Path: harness.PathHeld}},
		"prefixed user agent":    {wake.Call{UserAgent: "not-claude-code/1.0"}, harness.Agent{Path: harness.PathHeld}},
		"codex meta":             {wake.Call{Meta: codex}, harness.Agent{Harness: "codex", Via: "meta", Path: harness.PathConnector}},
		"codex without a thread": {wake.Call{Client: "codex-mcp-client"}, harness.Agent{Harness: "codex", Via: "client", Path: harness.PathHeld}},
		"the name counts first":  {wake.Call{Client: "claude-code", UserAgent: "openai-mcp/1", Meta: codex}, harness.Agent{Harness: "claude-code", Via: "client", Path: harness.PathMonitor}},
		"a claim alone":          {wake.Call{Client: "some-client", Harness: "claude-code"}, harness.Agent{Claimed: "claude-code", Path: harness.PathHeld}},
		"a claim against a name": {wake.Call{Client: "claude-code", Harness: "chatgpt"}, harness.Agent{Harness: "claude-code", Via: "client", Claimed: "chatgpt", Path: harness.PathMonitor}},
		"mcp":                    {wake.Call{Client: "mcp"}, harness.Agent{Path: harness.PathHeld}},
		"mcp that says hermes":   {wake.Call{Client: "mcp", Harness: "hermes"}, harness.Agent{Harness: "hermes", Via: "harness", Claimed: "hermes", Path: harness.PathHeld}},
		"mcp that says codex":    {wake.Call{Client: "mcp", Harness: "codex"}, harness.Agent{Claimed: "codex", Path: harness.PathHeld}},
		"native":                 {wake.Call{Client: "x", Extensions: []string{harness.EventsExtension}}, harness.Agent{Path: harness.PathNative}},
		"native and recognised":  {wake.Call{Client: "claude-code", Extensions: []string{harness.EventsExtension}}, harness.Agent{Harness: "claude-code", Via: "client", Path: harness.PathMonitor}},
	} {
		if diff := cmp.Diff(test.want, harness.Recognise(test.call)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestThread(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		call wake.Call
		want string
	}{
		{wake.Call{}, ""},
		{wake.Call{Conversation: " c1 "}, "c1"},
		{wake.Call{Meta: json.RawMessage(`{"x-codex-turn-metadata":{"thread_id":"t1"}}`), Conversation: "c1"}, "t1"},
	} {
		if got := harness.Thread(test.call); got != test.want {
			t.Errorf("%+v: %q", test.call, got)
		}
	}
}

func TestIDsAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, h := range harness.Table() {
		for _, name := range append([]string{h.ID}, h.Clients...) {
			if key := name; seen[key] && name != h.ID {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
	}
}
