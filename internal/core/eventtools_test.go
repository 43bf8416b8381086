package core_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

// tool calls an event tool; a call that is refused fails the test.
func (b *bench) tool(call wake.Call, tool, arguments string) core.EventToolAnswer {
	b.Helper()
	answer, err := b.core.CallEventTool(b.Context(), b.app, call, core.EventToolCall{Tool: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		b.Fatalf("%s %s: %v", tool, arguments, err)
	}
	return answer
}

var subscriptionID = regexp.MustCompile(`sub_[a-z0-9]{5,}`)

// said is a text with its ids left out.
func said(text string) string { return subscriptionID.ReplaceAllString(text, "‹id›") }

func TestWhichEventToolsThereAre(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, test := range map[string]struct {
		call   wake.Call
		offers []string // nil: no tools
	}{
		"nobody signed in":   {wake.Call{Client: "claude-code"}, []string{"code.sent", "site.updated"}},
		"somebody signed in": {wake.Call{Client: "claude-code", User: "ada"}, []string{"code.sent", "site.updated", "your.turn"}},
		"ChatGPT":            {wake.Call{Client: "openai-mcp"}, []string{"code.sent", "site.updated"}},
		"ChatGPT, signed in": {wake.Call{Client: "openai-mcp", User: "ada"}, nil},
		"a native client":    {wake.Call{Client: "x", Extensions: []string{harness.EventsExtension}}, nil},
	} {
		tools, err := b.core.EventTools(t.Context(), b.app, test.call)
		if err != nil {
			t.Fatal(err)
		}
		var offers []string
		for _, tool := range tools {
			if tool.Name == harness.SubscribeEvents {
				for _, m := range regexp.MustCompile(`\n- ([a-z.]+):`).FindAllStringSubmatch(tool.Description, -1) {
					offers = append(offers, m[1])
				}
			}
		}
		if diff := cmp.Diff(test.offers, offers); diff != "" || len(tools) != 0 && len(tools) != 3 {
			t.Errorf("%s: %d tools, offers (-want +got):\n%s", name, len(tools), diff)
		}
	}
	if _, err := b.core.EventTools(t.Context(), b.app, wake.Call{Client: strings.Repeat("x", 300)}); !refusal.Is(err, refusal.BadRequest) {
		t.Errorf("a bad call: %v", err)
	}
	if _, err := b.core.PutManifest(t.Context(), b.app, json.RawMessage(strings.ReplaceAll(manifest, `"public":true`, `"public":false`))); err != nil {
		t.Fatal(err)
	}
	if tools, err := b.core.EventTools(t.Context(), b.app, wake.Call{Client: "claude-code"}); err != nil || len(tools) != 0 {
		t.Errorf("with nothing public: %v, %v", tools, err)
	}
}

func TestSubscribingByTool(t *testing.T) {
	t.Parallel()
	b := setup(t)
	claude := wake.Call{Client: "claude-code", Tool: harness.SubscribeEvents}
	const site = `{"event":"site.updated","arguments":{"site":"a"}}`
	answer := b.tool(claude, harness.SubscribeEvents, site)
	if diff := cmp.Diff(`Subscribed to site.updated {"site":"a"}. The subscription's id is ‹id›.`, said(answer.Text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if answer.Subscription == "" || answer.Session == "" || !strings.Contains(answer.Addition.Text, "call your Monitor tool") {
		t.Errorf("%+v", answer)
	}
	claude.Session = answer.Session
	again := b.tool(claude, harness.SubscribeEvents, site)
	if diff := cmp.Diff(`Already subscribed to site.updated {"site":"a"}: the subscription, ‹id›, is renewed.`, said(again.Text)); diff != "" || again.Subscription != answer.Subscription {
		t.Errorf("%s, then %s (-want +got):\n%s", answer.Subscription, again.Subscription, diff)
	}
	b.tool(claude, harness.SubscribeEvents, `{"event":"site.updated","arguments":{"site":"b"},"once":true}`)
	in := b.inbox(core.Subscribed{Addition: answer.Addition})
	for _, site := range []string{"a", "b", "b"} {
		if _, err := b.core.Emit(t.Context(), b.app, core.Emit{Name: "site.updated", Arguments: json.RawMessage(`{"site":"` + site + `"}`),
			Payload: json.RawMessage(`{"pages":1}`), Text: "site " + site}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"site a", "site b"}, b.read(in)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestEventToolsRefuse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const site = `{"event":"site.updated","arguments":{"site":"a"}}`
	subscribe := func(arguments string) core.EventToolCall {
		return core.EventToolCall{Tool: harness.SubscribeEvents, Arguments: json.RawMessage(arguments)}
	}
	unsubscribe := func(arguments string) core.EventToolCall {
		return core.EventToolCall{Tool: harness.UnsubscribeEvents, Arguments: json.RawMessage(arguments)}
	}
	with := func(q core.EventToolCall, problem string, refused bool) core.EventToolCall {
		q.Problem, q.Refused = problem, refused
		return q
	}
	for name, test := range map[string]struct {
		call wake.Call
		tool core.EventToolCall
		want refusal.Code
		says string
	}{
		"another tool":             {wake.Call{}, core.EventToolCall{Tool: "watch"}, refusal.BadRequest, `tool: there is no event tool "watch"`},
		"no event":                 {wake.Call{}, subscribe(`{}`), refusal.BadRequest, "arguments: event: is missing"},
		"no arguments":             {wake.Call{}, subscribe(``), refusal.BadRequest, "arguments: event: is missing"},
		"a list":                   {wake.Call{}, subscribe(`[]`), refusal.BadRequest, "arguments: they do not fit the input schema of subscribe_events"},
		"an unknown member":        {wake.Call{}, subscribe(`{"event":"site.updated","args":{}}`), refusal.BadRequest, "arguments: they do not fit the input schema of subscribe_events"},
		"an event twice":           {wake.Call{}, subscribe(`{"event":"x","event":"site.updated"}`), refusal.BadRequest, "arguments: they do not fit the input schema of subscribe_events"},
		"an event that is a list":  {wake.Call{}, subscribe(`{"event":[]}`), refusal.BadRequest, "arguments: they do not fit the input schema of subscribe_events"},
		"more than one object":     {wake.Call{}, subscribe(site + `{}`), refusal.BadRequest, "arguments: they do not fit the input schema of subscribe_events"},
		"neither id nor event":     {wake.Call{}, unsubscribe(`{}`), refusal.BadRequest, "arguments: either an event with its arguments, or an id"},
		"both id and event":        {wake.Call{}, unsubscribe(`{"id":"sub_x","event":"site.updated"}`), refusal.BadRequest, "arguments: either an event with its arguments, or an id"},
		"for tools only":           {wake.Call{}, subscribe(`{"event":"crawl.finished","arguments":{"job":"j"}}`), refusal.UnknownEvent, `"crawl.finished" is not on offer; list_subscriptions lists what is`},
		"there is none":            {wake.Call{}, subscribe(`{"event":"no such\n"}`), refusal.UnknownEvent, `"no such·" is not on offer; list_subscriptions lists what is`},
		"personal, as nobody":      {wake.Call{}, subscribe(`{"event":"your.turn","arguments":{"game":"g"}}`), refusal.UnknownEvent, `"your.turn" is not on offer; list_subscriptions lists what is`},
		"arguments that route not": {wake.Call{}, subscribe(`{"event":"site.updated","arguments":{"site":"A B"}}`), refusal.BadArguments, "arguments for site.updated: site: a value that routes is made of a-z 0-9 . _ -"},
		"the app's check":          {wake.Call{}, with(subscribe(site), "the app says\nno", false), refusal.BadArguments, "the app says no"},
		"the app's authorization":  {wake.Call{}, with(subscribe(site), "", true), refusal.Forbidden, "the app does not allow site.updated with these arguments"},
		"a native client": {wake.Call{Extensions: []string{harness.EventsExtension}}, subscribe(site), refusal.Unsupported,
			"your client speaks MCP Events: it subscribes with events/subscribe, events/stream or events/poll"},
		"a bad session":             {wake.Call{Session: "wsk_x"}, subscribe(site), refusal.UnknownSession, ""},
		"unsubscribing, likewise":   {wake.Call{Session: "wsk_x"}, unsubscribe(site), refusal.UnknownSession, ""},
		"by id, likewise":           {wake.Call{Session: "wsk_x"}, unsubscribe(`{"id":"sub_x"}`), refusal.UnknownSession, ""},
		"listing, likewise":         {wake.Call{Session: "wsk_x"}, core.EventToolCall{Tool: harness.ListSubscriptions}, refusal.UnknownSession, ""},
		"a bad call":                {wake.Call{Client: "\n"}, core.EventToolCall{Tool: harness.ListSubscriptions}, refusal.BadRequest, ""},
		"unsubscribing from no one": {wake.Call{}, unsubscribe(`{"event":"no.such"}`), refusal.UnknownEvent, ""},
	} {
		_, err := b.core.CallEventTool(t.Context(), b.app, test.call, test.tool)
		if !refusal.Is(err, test.want) || test.says != "" && refusal.Of(err).Message != test.says {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	if standing, _, err := b.core.Standing(t.Context(), b.app.ID); err != nil || len(standing) != 0 {
		t.Errorf("subscribed all the same: %v, %v", standing, err)
	}
}

// listed is what list_subscriptions says before the events on offer.
func (b *bench) listed(call wake.Call) string {
	b.Helper()
	text, _, found := strings.Cut(said(b.tool(call, harness.ListSubscriptions, ``).Text), "\n\nEvents on offer")
	if !found {
		b.Errorf("no events are on offer: %s", text)
	}
	return text
}

func TestUnsubscribingAndListingByTool(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cursor := wake.Call{Client: "Cursor"}
	made := b.tool(cursor, harness.SubscribeEvents, `{"event":"site.updated","arguments":{"site":"a"}}`)
	other := b.tool(cursor, harness.SubscribeEvents, `{"event":"site.updated","arguments":{"site":"a"}}`)
	cursor.Session = made.Session
	b.tool(cursor, harness.SubscribeEvents, `{"event":"site.updated","arguments":{"site":"b"},"once":true}`)
	b.tool(cursor, harness.SubscribeEvents, `{"event":"code.sent","arguments":{"job":"j"}}`)
	want := "This conversation is subscribed to:\n- site.updated {\"site\":\"a\"}: id ‹id›\n" +
		"- site.updated {\"site\":\"b\"}: id ‹id›, ends with its first occurrence\n- code.sent {\"job\":\"j\"}: id ‹id›"
	if diff := cmp.Diff(want, b.listed(cursor)); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	for _, step := range []struct{ arguments, want string }{
		{`{"id":"` + made.Subscription + `"}`, "Stopped: ‹id›."},
		{`{"id":"` + made.Subscription + `"}`, "Nothing to stop: there is no such subscription of yours, ‹id›. list_subscriptions shows those there are."},
		// Another conversation's id is as good as nobody's.
		{`{"id":"` + other.Subscription + `"}`, "Nothing to stop: there is no such subscription of yours, ‹id›. list_subscriptions shows those there are."},
		{`{"id":"../"}`, "Nothing to stop: there is no such subscription of yours, ../. list_subscriptions shows those there are."},
		{`{"event":"site.updated","arguments":{ "site": "b" }}`, `Stopped: site.updated {"site":"b"}.`},
		{`{"event":"site.updated","arguments":{"site":"b"}}`,
			`Nothing to stop: there is no such subscription of yours, site.updated {"site":"b"}. list_subscriptions shows those there are.`},
	} {
		if diff := cmp.Diff(step.want, said(b.tool(cursor, harness.UnsubscribeEvents, step.arguments).Text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.arguments, diff)
		}
	}
	if diff := cmp.Diff("This conversation is subscribed to:\n- code.sent {\"job\":\"j\"}: id ‹id›", b.listed(cursor)); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	// A call that names no conversation has nothing.
	text := b.tool(wake.Call{Client: "Cursor"}, harness.ListSubscriptions, `{"after":"code.sent"}`).Text
	if strings.Contains(text, "code.sent") || !strings.HasPrefix(text, "This conversation has no subscriptions.") || !strings.Contains(text, "- site.updated: A site changed") {
		t.Errorf("somebody else: %s", text)
	}
}

// Who is signed in sees, and may end, what the same user has elsewhere, and nothing of another's.
func TestEventToolsOfAUser(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ada, bob := wake.Call{Client: "Cursor", User: "ada"}, wake.Call{Client: "Cursor", User: "bob"}
	made := b.tool(ada, harness.SubscribeEvents, `{"event":"your.turn","arguments":{"game":"g"}}`)
	hook, err := b.core.SubscribeWebhook(t.Context(), b.app, core.Native{Call: ada, Name: "site.updated", Arguments: json.RawMessage(`{"site":"a"}`)},
		core.HookRequest{URL: "https://hooks.example.com/secret/path", Secret: "whsec_one"})
	if err != nil {
		t.Fatal(err)
	}
	const none = "This conversation has no subscriptions. (If it should, pass the session_key that an earlier result gave you.)"
	want := none + "\n\nYour user is also subscribed to:\n- your.turn {\"game\":\"g\"}: id ‹id›, in another conversation\n" +
		"- site.updated {\"site\":\"a\"}: id ‹id›, by a webhook at hooks.example.com"
	if diff := cmp.Diff(want, b.listed(ada)); diff != "" {
		t.Errorf("ada (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(none, b.listed(bob)); diff != "" {
		t.Errorf("bob (-want +got):\n%s", diff)
	}
	for _, id := range []string{made.Subscription, hook.ID} {
		if text := b.tool(bob, harness.UnsubscribeEvents, `{"id":"`+id+`"}`).Text; !strings.HasPrefix(text, "Nothing to stop") {
			t.Errorf("bob ends %s: %s", id, text)
		}
		if text := b.tool(ada, harness.UnsubscribeEvents, `{"id":"`+id+`"}`).Text; text != "Stopped: "+id+"." {
			t.Errorf("ada ends %s: %s", id, text)
		}
	}
	if diff := cmp.Diff(none, b.listed(ada)); diff != "" {
		t.Errorf("ada, after (-want +got):\n%s", diff)
	}
}
