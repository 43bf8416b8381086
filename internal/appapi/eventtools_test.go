package appapi_test

import "testing"

func TestEventTools(t *testing.T) {
	t.Parallel()
	golden(t, setup(t), "event-tools", func(s *transcript) {
		s.post("/event-tools", `{"call":{"client":"claude-code"}}`)
		// A client that speaks MCP Events itself has none.
		s.post("/event-tools", `{"call":{"client":"some-client","extensions":["io.modelcontextprotocol/events"]}}`)
	})
}

func TestCallingEventTools(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for name, call := range map[string]string{
		"monitor":   `"client":"claude-code"`,
		"voucher":   `"client":"openai-mcp"`,
		"held":      `"client":"Cursor"`,
		"connector": `"client":"codex-mcp-client","meta":{"x-codex-turn-metadata":{"thread_id":"thread-1"}}`,
	} {
		golden(t, l, "event-tools-"+name, func(s *transcript) {
			const site = `{"event":"site.updated","arguments":{"site":"a"}}`
			made := s.post("/event-tools/call", `{"call":{`+call+`},"tool":"subscribe_events","arguments":`+site+`}`)
			again := call + `,"session":"` + made["session"].(string) + `"`
			s.post("/event-tools/call", `{"call":{`+again+`},"tool":"list_subscriptions"}`)
			s.post("/event-tools/call", `{"call":{`+again+`},"tool":"unsubscribe_events","arguments":`+site+`}`)
			s.post("/event-tools/call", `{"call":{`+again+`},"tool":"unsubscribe_events","arguments":{"id":"`+made["id"].(string)+`"}}`)
		})
	}
}

func TestBadCallsOfEventTools(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for body, want := range map[string]string{
		`{}`:                         "bad_request: call: is missing",
		`{"call":{}}`:                "bad_request: tool: is missing",
		`{"call":{},"tool":"watch"}`: `bad_request: tool: there is no event tool "watch"`,
		`{"call":{},"tool":"list_subscriptions","arguments":{"after":7}}`:                                                                 "bad_request: arguments: they do not fit the input schema of list_subscriptions",
		`{"call":{"session":"wsk_x"},"tool":"list_subscriptions"}`:                                                                        "unknown_session: session: there is no conversation of this app, client and user with that key",
		`{"call":{},"tool":"subscribe_events","arguments":{"event":"a"},"refused":7}`:                                                     "bad_request: refused: must be true or false",
		`{"call":{},"tool":"subscribe_events","arguments":{"event":"site.updated","arguments":{"site":"a"}},"refused":true}`:              "forbidden: the app does not allow site.updated with these arguments",
		`{"call":{},"tool":"subscribe_events","arguments":{"event":"site.updated","arguments":{"site":"a"}},"problem":"page is missing"}`: "bad_arguments: page is missing",
		`{"call":{},"tool":"subscribe_events","arguments":{"event":"crawl.finished","arguments":{"job":"j"}}}`:                            `unknown_event: "crawl.finished" is not on offer; list_subscriptions lists what is`,
	} {
		if got := l.app.send(t, "POST", "/event-tools/call", body).says(t); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if got := l.app.send(t, "POST", "/event-tools", `{}`).says(t); got != "bad_request: call: is missing" {
		t.Error(got)
	}
}
