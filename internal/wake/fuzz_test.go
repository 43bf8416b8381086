package wake_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

// FuzzNames holds that what passes for a name is one, and that what does not can be shown to a terminal.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"", "crawl.finished", "a.b.c.d.e.f", "wakeshift.x", "builds", "u/ada/mail", "u/ada", "u//x", "ev/x", "rouse/conversation/c",
		"a b", "tab\t", "\x1b[2J", "\u2028", "\xff", "ü", strings.Repeat("x", 513), `"`} {
		f.Add(seed, "ada")
	}
	f.Fuzz(func(t *testing.T, text, user string) {
		quoted := wake.Quote(text)
		if utf8.RuneCountInString(quoted) > 83 || strings.ContainsFunc(quoted, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q is shown as %q", text, quoted)
		}
		for _, err := range []error{wake.CheckTopic(text), wake.CheckEventName(text), wake.CheckAppID(text), wake.CheckUser("user", text), wake.CheckPrivateTopic(text, user)} {
			if err != nil && (refusal.Of(err) == nil || len(err.Error()) > 500) {
				t.Errorf("%q: %v", text, err)
			}
		}
		if wake.CheckEventName(text) == nil && (strings.ContainsAny(text, "/{} ") || len(text) > wake.MaxEventName) {
			t.Errorf("%q is an event's name", text)
		}
		if wake.CheckTopic(text) == nil && (text == "" || strings.HasPrefix(text, wake.ReservedTopicPrefix) || strings.HasPrefix(text, wake.EventTopicPrefix) ||
			strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })) {
			t.Errorf("%q is a topic", text)
		}
		// A user's own topics are open to that user, and to nobody else.
		if prefix := wake.PrivateTopicPrefix(user); prefix != "" {
			if err := wake.CheckPrivateTopic(prefix+text, user); err != nil {
				t.Errorf("%q may not have %q: %v", user, prefix+text, err)
			}
			if wake.CheckPrivateTopic(prefix+text, user+"x") == nil {
				t.Errorf("%q may have %q", user+"x", prefix+text)
			}
		}
	})
}

// FuzzFilter holds that a filter is refused or works, and that a payload which has exactly what it asks for passes.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{``, `null`, `{}`, `[]`, `{"a":1}`, `{"a":1.0}`, `{"a":"\u0041"}`, `{"a":null}`, `{"a":{}}`, `{"a":[1]}`, `{"a":1e400}`, `{"a":-0}`,
		`{"a":true,"a":false}`, `{"":1e-400}`, `{"a":` + strings.Repeat("9", 500) + `}`} {
		f.Add([]byte(seed), []byte(`{"a":1e0}`))
	}
	f.Fuzz(func(t *testing.T, raw, payload []byte) {
		filter, err := wake.ParseFilter(raw)
		if err != nil {
			if refusal.Of(err) == nil || len(err.Error()) > 500 {
				t.Errorf("%q: %v", raw, err)
			}
			return
		}
		filter.Passes(payload)
		if filter != nil && !filter.Passes(raw) {
			t.Errorf("%q does not pass itself", raw)
		}
		for name := range filter {
			var without map[string]json.RawMessage
			if json.Unmarshal(raw, &without) != nil {
				t.Fatalf("%q", raw)
			}
			delete(without, name)
			rest, err := json.Marshal(without)
			if err == nil && filter.Passes(rest) {
				t.Errorf("%q passes without %q", raw, name)
			}
		}
	})
}

// FuzzRouting holds that whatever topic and filter a manifest gives an event, and whatever values its arguments have, they are refused
// or lead to a topic without a trace of the template.
func FuzzRouting(f *testing.F) {
	for _, topic := range []string{"ev/x/{a}/{n}", "ev/x", "builds/{a}", "{a}", "ev/{a}{n}", "ev/{}", "ev/{a", "ev/a}", "ev/{{a}}", "ev/{zz}", "rouse/{a}", "ev/ {a}", "ü/{b}"} {
		f.Add(topic, "{o}", "value", 7.0, true)
	}
	f.Add("ev/x/{n}", "plain", "A/B", 1e300, false)
	f.Add("ev/x/{n}", "{a", "..", -0.5, false)
	f.Fuzz(func(t *testing.T, topic, filter, a string, n float64, b bool) {
		marshal := func(value any) []byte {
			text, err := json.Marshal(value)
			if err != nil {
				t.Skip() // no JSON has it
			}
			return text
		}
		body := fmt.Sprintf(`{"events":[{"name":"x","description":"x","topic":%s,"filter":{"o":%s},"payload":{"type":"object"},"arguments":{"type":"object",`+
			`"properties":{"a":{"type":"string"},"n":{"type":"number"},"b":{"type":"boolean"},"o":{"type":"string"}}}}]}`, marshal(topic), marshal(filter))
		m, err := wake.ParseManifest(json.RawMessage(body))
		if err != nil {
			if refusal.Of(err) == nil || len(err.Error()) > 500 {
				t.Errorf("%s: %v", body, err)
			}
			return
		}
		bound, err := m.Events["x"].Bind(marshal(map[string]any{"a": a, "n": n, "b": b}))
		if err != nil {
			if refusal.Of(err) == nil || len(err.Error()) > 500 {
				t.Errorf("%s: %v", body, err)
			}
			return
		}
		if bound.Topic == "" || strings.ContainsAny(bound.Topic, "{}") || strings.ContainsFunc(bound.Topic, unicode.IsControl) ||
			strings.HasPrefix(bound.Topic, wake.ReservedTopicPrefix) {
			t.Errorf("the topic %q leads to %q", topic, bound.Topic)
		}
		again, err := m.Events["x"].Bind(bound.Canonical)
		if err != nil || again.Topic != bound.Topic || string(again.Canonical) != string(bound.Canonical) {
			t.Errorf("%s leads to %q, then to %q, %v", bound.Canonical, bound.Topic, again.Topic, err)
		}
	})
}
