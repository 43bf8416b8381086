package wake_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

func TestFilterPasses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		filter, data string
		passes       bool
	}{
		{`null`, `{}`, true},
		{`{}`, `{"a":1}`, true},
		{`{"a":"x"}`, `{"a":"x","b":2}`, true},
		{`{"a":"x"}`, `{"a":"xy"}`, false},
		{`{"a":"x"}`, `{"b":"x"}`, false},
		{`{"a":"é"}`, `{"a":"\u00e9"}`, true},
		{`{"a":1}`, `{"a":1.0}`, true},
		{`{"a":10}`, `{"a":1e1}`, true},
		{`{"a":1}`, `{"a":"1"}`, false},
		{`{"a":1}`, `{"a":true}`, false},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{"a":true}`, `{"a":true}`, true},
		{`{"a":false}`, `{"a":null}`, false},
		{`{"a":null}`, `{"a":null}`, true},
		{`{"a":null}`, `{}`, false},
		{`{"a":1,"b":2}`, `{"a":1,"b":2}`, true},
		{`{"a":1,"b":2}`, `{"a":1,"b":3}`, false},
		{`{"a":1}`, `{"a":{"a":1}}`, false},
		{`{"a":1}`, ``, false},
		{`{"a":1e999999999}`, `{"a":1e999999998}`, false},
	} {
		f, err := wake.ParseFilter(json.RawMessage(test.filter))
		if err != nil {
			t.Errorf("%s: %v", test.filter, err)
		}
		if got := f.Passes(json.RawMessage(test.data)); got != test.passes {
			t.Errorf("%s lets %s pass: %v", test.filter, test.data, got)
		}
	}
}

func TestParseFilterRefuses(t *testing.T) {
	t.Parallel()
	for _, filter := range []string{`"f"`, `[]`, `7`, `{"a":{}}`, `{"a":[1]}`} {
		if _, err := wake.ParseFilter(json.RawMessage(filter)); !refusal.Is(err, refusal.BadRequest) {
			t.Errorf("%s: %v", filter, err)
		}
	}
}

func TestSubscriptionTakes(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	base := wake.Subscription{App: "a", Topic: "t", Event: "e", User: "ada", From: 5, ExpiresAt: at.Add(time.Hour)}
	event := wake.Occurrence{App: "a", Topics: []string{"t"}, Event: "e", At: at}
	for name, test := range map[string]struct {
		change func(*wake.Subscription, *wake.Occurrence)
		takes  bool
	}{
		"new":                    {func(*wake.Subscription, *wake.Occurrence) {}, true},
		"another app":            {func(_ *wake.Subscription, o *wake.Occurrence) { o.App = "b" }, false},
		"another topic":          {func(_ *wake.Subscription, o *wake.Occurrence) { o.Topics = []string{"u"} }, false},
		"one of several topics":  {func(_ *wake.Subscription, o *wake.Occurrence) { o.Topics = []string{"s", "t"} }, true},
		"another event":          {func(_ *wake.Subscription, o *wake.Occurrence) { o.Event = "f" }, false},
		"topic, not event":       {func(s *wake.Subscription, _ *wake.Occurrence) { s.Event = "" }, true},
		"before it began":        {func(_ *wake.Subscription, o *wake.Occurrence) { o.Seq = 5 }, false},
		"right after it began":   {func(_ *wake.Subscription, o *wake.Occurrence) { o.Seq = 6 }, true},
		"ended, up to its end":   {func(s *wake.Subscription, o *wake.Occurrence) { s.EndedAt, s.Until, o.Seq = at, 7, 7 }, true},
		"ended, after its end":   {func(s *wake.Subscription, o *wake.Occurrence) { s.EndedAt, s.Until, o.Seq = at, 7, 8 }, false},
		"ended, not yet written": {func(s *wake.Subscription, _ *wake.Occurrence) { s.EndedAt, s.Until = at, 7 }, false},
		"expired":                {func(s *wake.Subscription, _ *wake.Occurrence) { s.ExpiresAt = at }, false},
		"for its user":           {func(_ *wake.Subscription, o *wake.Occurrence) { o.To = "ada" }, true},
		"for another user":       {func(_ *wake.Subscription, o *wake.Occurrence) { o.To = "bob" }, false},
		"for a user, by nobody":  {func(s *wake.Subscription, o *wake.Occurrence) { s.User, o.To = "", "bob" }, false},
		"claimed by a webhook":   {func(s *wake.Subscription, _ *wake.Occurrence) { s.Claimed = true }, false},
		"filtered":               {func(s *wake.Subscription, _ *wake.Occurrence) { s.Filter = wake.Filter{"x": json.RawMessage("1")} }, false},
		"filtered and passing it": {func(s *wake.Subscription, o *wake.Occurrence) {
			s.Filter, o.Data = wake.Filter{"x": json.RawMessage("1")}, json.RawMessage(`{"x":1}`)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o := base, event
			test.change(&s, &o)
			if got := s.Takes(o); got != test.takes {
				t.Errorf("takes: %v", got)
			}
		})
	}
}

func TestOccurrenceIDs(t *testing.T) {
	t.Parallel()
	for _, seq := range []wake.Seq{1, 35, 36, 1 << 40} {
		id := wake.OccurrenceID("abcd", seq)
		if got, ok := wake.ParseOccurrenceID("abcd", id); !ok || got != seq {
			t.Errorf("%s: %d, %v", id, got, ok)
		}
		if _, ok := wake.ParseOccurrenceID("abce", id); ok {
			t.Errorf("%s is taken for one of another log", id)
		}
	}
	for _, id := range []string{"", "evt_", "evt_abcd", "evt_abcd0", "evt_abcd-1", "evt_abcd01", "evt_abcdZ", "evt_abcd+1", "evt_abcdzzzzzzzzzzzzzzzz"} {
		if _, ok := wake.ParseOccurrenceID("abcd", id); ok {
			t.Errorf("%q is taken for an id", id)
		}
	}
}

func TestEventIDIsTheAppsOwnWhereAHeaderCanHoldIt(t *testing.T) {
	t.Parallel()
	own := wake.OccurrenceID("abcd", 7)
	for key, want := range map[string]string{"": own, "job-1": "job-1", "with space": own, "ü": own, strings.Repeat("x", 257): own} {
		if got := (wake.Occurrence{Seq: 7, Key: key}).EventID("abcd"); got != want {
			t.Errorf("%q: %q", key, got)
		}
	}
}

func TestPacer(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	p := wake.NewPacer(10, 2*time.Second, at)
	if got := p.Ready(at); got != 10 {
		t.Fatalf("%d ready at first", got)
	}
	p.Spend(10, at)
	if got, wait := p.Ready(at), p.Wait(at); got != 0 || wait != 2*time.Second {
		t.Errorf("after the burst %d ready, the next in %v", got, wait)
	}
	at = at.Add(time.Second)
	if got, wait := p.Ready(at), p.Wait(at); got != 0 || wait != time.Second {
		t.Errorf("a second later %d ready, the next in %v", got, wait)
	}
	at = at.Add(time.Second)
	if got, wait := p.Ready(at), p.Wait(at); got != 1 || wait != 0 {
		t.Errorf("after the interval %d ready, the next in %v", got, wait)
	}
	if got := p.Ready(at.Add(time.Hour)); got != 10 {
		t.Errorf("%d ready after an hour", got)
	}
	// Many small refills add up to whole lines all the same.
	p = wake.NewPacer(1, 2*time.Second, at)
	p.Spend(1, at)
	for range 2000 {
		at = at.Add(time.Millisecond)
		p.Ready(at)
	}
	if got := p.Ready(at); got != 1 {
		t.Errorf("%d ready after 2,000 steps of 1 ms", got)
	}
}

func TestCheckTopic(t *testing.T) {
	t.Parallel()
	for topic, good := range map[string]bool{
		"x": true, "u/ada/inbox": true, "ü/🦀": true, "a*b": true, strings.Repeat("x", wake.MaxTopic): true,
		"": false, "a b": false, "a\n": false, "a\x00": false, "rouse/x": false, "ev/crawl.finished/j1": false, strings.Repeat("x", wake.MaxTopic+1): false,
	} {
		if err := wake.CheckTopic(topic); (err == nil) != good {
			t.Errorf("%.40q: %v", topic, err)
		}
	}
}

func TestCheckPrivateTopic(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		topic, user string
		good        bool
	}{
		{"u/ada/x", "ada", true}, {"u/ada/x", "bob", false}, {"u/ada/x", "", false}, {"u/ada/x", "ada/x", false}, {"u/ad/x", "ada", false},
		{"u/ada", "bob", true}, {"x/ada/y", "bob", true},
	} {
		err := wake.CheckPrivateTopic(test.topic, test.user)
		if (err == nil) != test.good || err != nil && !refusal.Is(err, refusal.PrivateTopic) {
			t.Errorf("%s as %q: %v", test.topic, test.user, err)
		}
	}
}

func TestCallCheck(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call wake.Call
		want string // the field named; empty: good
	}{
		"empty":              {wake.Call{}, ""},
		"null meta":          {wake.Call{Meta: json.RawMessage("null")}, ""},
		"long client":        {wake.Call{Client: strings.Repeat("x", 201)}, "call.client"},
		"control characters": {wake.Call{Client: "a\x00b"}, "call.client"},
		"line separator":     {wake.Call{Conversation: "\u2028"}, "call.conversation"},
		"long user":          {wake.Call{User: strings.Repeat("u", 257)}, "call.user"},
		"meta a text":        {wake.Call{Meta: json.RawMessage(`"x"`)}, "call.meta"},
		"large meta":         {wake.Call{Meta: json.RawMessage(`{"x":"` + strings.Repeat("x", 70_000) + `"}`)}, "call.meta"},
		"many extensions":    {wake.Call{Extensions: make([]string, 51)}, "call.extensions"},
		"long extension":     {wake.Call{Extensions: []string{strings.Repeat("x", 201)}}, "call.extensions[0]"},
	} {
		err := test.call.Check()
		if test.want == "" && err != nil || test.want != "" && (!refusal.Is(err, refusal.BadRequest) || !strings.Contains(err.Error(), test.want+":")) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestCodexThread(t *testing.T) {
	t.Parallel()
	for meta, want := range map[string]struct {
		thread string
		ok     bool
	}{
		``: {}, `{}`: {}, `null`: {}, `{"other":{"thread_id":"t"}}`: {},
		`{"x-codex-turn-metadata":{"thread_id":"t1"}}`:       {"t1", true},
		`{"x-codex-turn-metadata":"{\"thread_id\":\"t1\"}"}`: {"t1", true},
		`{"x-codex-turn-metadata":{}}`:                       {"", true},
		`{"x-codex-turn-metadata":7}`:                        {"", true},
		`{"x-codex-turn-metadata":{"thread_id":"a\u0000"}}`:  {"", true},
	} {
		thread, ok := wake.Call{Meta: json.RawMessage(meta)}.CodexThread()
		if thread != want.thread || ok != want.ok {
			t.Errorf("%s: %q, %v", meta, thread, ok)
		}
	}
}

func TestQuoteTamesNames(t *testing.T) {
	t.Parallel()
	if got := wake.Quote("a\"b\n\x1b[31m" + strings.Repeat("x", 200)); strings.ContainsAny(got[1:len(got)-1], "\"\n\x1b") || len(got) > 120 {
		t.Errorf("%q", got)
	}
}
