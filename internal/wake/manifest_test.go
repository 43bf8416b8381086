package wake_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

// entry is a good manifest event with some members replaced; a nil member is left out.
func entry(changes map[string]any) string {
	e := map[string]any{
		"name": "crawl.finished", "description": "A crawl finished", "topic": "ev/crawl.finished/{job}",
		"arguments": json.RawMessage(`{"type":"object","properties":{"job":{"type":"string"},"level":{"type":"string"}},"required":["job"]}`),
		"payload":   json.RawMessage(`{"type":"object","properties":{"pages":{"type":"integer"},"level":{"type":"string"}},"required":["pages"]}`),
		"filter":    map[string]string{"level": "{level}"},
	}
	for name, value := range changes {
		if e[name] = value; value == nil {
			delete(e, name)
		}
	}
	text, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func parse(t *testing.T, events ...string) *wake.Manifest {
	t.Helper()
	m, err := wake.ParseManifest(json.RawMessage(`{"events":[` + strings.Join(events, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func crawl(t *testing.T) *wake.Event { return parse(t, entry(nil)).Events["crawl.finished"] }

func TestManifestRefusals(t *testing.T) {
	t.Parallel()
	raw := func(s string) any { return json.RawMessage(s) }
	args := func(property string) any {
		return raw(fmt.Sprintf(`{"type":"object","properties":{%s},"required":["job"]}`, property))
	}
	for name, test := range map[string]struct {
		body string
		want string // part of the message
	}{
		"events an object":      {`{"events":{}}`, "events"},
		"event a string":        {`{"events":["x"]}`, "events[0]"},
		"event null":            {`{"events":[null]}`, "events[0]"},
		"upper case":            {entry(map[string]any{"name": "Crawl.finished"}), "name"},
		"six words":             {entry(map[string]any{"name": "a.b.c.d.e.f"}), "five words"},
		"65 characters":         {entry(map[string]any{"name": strings.Repeat("a", 65)}), "64"},
		"reserved":              {entry(map[string]any{"name": "wakeshift.done"}), "reserved"},
		"name a number":         {entry(map[string]any{"name": 7}), "name"},
		"no name":               {entry(map[string]any{"name": nil}), "name"},
		"no description":        {entry(map[string]any{"description": nil}), "description"},
		"no payload":            {entry(map[string]any{"payload": nil}), "payload"},
		"no topic":              {entry(map[string]any{"topic": nil}), "topic"},
		"schema a string":       {entry(map[string]any{"payload": "object"}), "payload"},
		"schema a list":         {entry(map[string]any{"payload": []int{}}), "payload"},
		"schema of no object":   {entry(map[string]any{"payload": raw(`{"type":"string"}`)}), "object"},
		"unknown type":          {entry(map[string]any{"payload": raw(`{"type":"thing"}`)}), "object"},
		"unknown type inside":   {entry(map[string]any{"payload": raw(`{"type":"object","properties":{"n":{"type":"thing"}}}`)}), "thing"},
		"required a string":     {entry(map[string]any{"payload": raw(`{"type":"object","required":"n"}`)}), "payload"},
		"properties a list":     {entry(map[string]any{"payload": raw(`{"type":"object","properties":[]}`)}), "payload"},
		"bad pattern":           {entry(map[string]any{"payload": raw(`{"type":"object","properties":{"n":{"type":"string","pattern":"("}}}`)}), "payload"},
		"remote reference":      {entry(map[string]any{"payload": raw(`{"type":"object","properties":{"n":{"$ref":"https://example.com/s"}}}`)}), "payload"},
		"argument upper case":   {entry(map[string]any{"arguments": args(`"job":{},"level":{},"Up":{}`)}), "Up"},
		"argument with a dash":  {entry(map[string]any{"arguments": args(`"job":{},"level":{},"a-b":{}`)}), "a-b"},
		"topic of no argument":  {entry(map[string]any{"topic": "ev/crawl.finished/{nothing}"}), "nothing"},
		"topic with a brace":    {entry(map[string]any{"topic": "ev/crawl.finished/{job"}), "brace"},
		"topic of the core":     {entry(map[string]any{"topic": "rouse/x"}), "core"},
		"filter of no argument": {entry(map[string]any{"filter": map[string]string{"level": "{nothing}"}}), "nothing"},
		"delivered by pigeon":   {entry(map[string]any{"delivery": []string{"poll", "pigeon"}}), "pigeon"},
		"delivered in no way":   {entry(map[string]any{"delivery": []string{}}), "at least one"},
		"delivery a string":     {entry(map[string]any{"delivery": "poll"}), "delivery"},
		"twice":                 {entry(nil) + "," + entry(nil), "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := test.body
			if !strings.HasPrefix(body, `{"events"`) {
				body = `{"events":[` + body + `]}`
			}
			_, err := wake.ParseManifest(json.RawMessage(body))
			if !refusal.Is(err, refusal.BadRequest) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want bad_request naming %q", err, test.want)
			}
		})
	}
}

func TestManifestLimitOfEvents(t *testing.T) {
	t.Parallel()
	var events []string
	for i := range wake.MaxEvents + 1 {
		events = append(events, entry(map[string]any{"name": fmt.Sprintf("e%d", i)}))
	}
	parse(t, events[:wake.MaxEvents]...)
	_, err := wake.ParseManifest(json.RawMessage(`{"events":[` + strings.Join(events, ",") + `]}`))
	if !refusal.Is(err, refusal.BadRequest) {
		t.Errorf("got %v", err)
	}
}

func TestManifestWithoutEventsSaysNothingOfThem(t *testing.T) {
	t.Parallel()
	m, err := wake.ParseManifest(json.RawMessage(`{"scope":"x"}`))
	if err != nil || m.Events != nil {
		t.Errorf("got %v, %v", m, err)
	}
	if m := parse(t); m.Events == nil {
		t.Error("an empty list of events is taken for none being said")
	}
}

func TestTheWaysAnEventOffers(t *testing.T) {
	t.Parallel()
	all := []string{wake.DeliveryPoll, wake.DeliveryPush, wake.DeliveryWebhook}
	for name, c := range map[string]struct {
		said any
		want []string
	}{"none said": {nil, all}, "two": {[]string{"webhook", "poll"}, []string{"poll", "webhook"}}, "one": {[]string{"push"}, []string{"push"}}} {
		e := parse(t, entry(map[string]any{"delivery": c.said})).Events["crawl.finished"]
		got := slices.DeleteFunc(slices.Clone(all), func(way string) bool { return !e.Offers(way) })
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLongestNameIsAName(t *testing.T) {
	t.Parallel()
	parse(t, entry(map[string]any{"name": "a-1.b_2.c.d." + strings.Repeat("e", 52)}))
}

func TestBreaks(t *testing.T) {
	t.Parallel()
	raw := func(s string) any { return json.RawMessage(s) }
	for name, test := range map[string]struct {
		change map[string]any
		breaks bool
	}{
		"nothing":     {nil, false},
		"description": {map[string]any{"description": "Other words"}, false},
		"a further optional argument": {map[string]any{"arguments": raw(
			`{"type":"object","properties":{"job":{"type":"string"},"level":{"type":"string"},"more":{"type":"string"}},"required":["job"]}`)}, false},
		"a further payload field": {map[string]any{"payload": raw(
			`{"type":"object","properties":{"pages":{"type":"integer"},"level":{"type":"string"},"more":{"type":"string"}},"required":["pages"]}`)}, false},
		"an argument retyped": {map[string]any{"arguments": raw(
			`{"type":"object","properties":{"job":{"type":"integer"},"level":{"type":"string"}},"required":["job"]}`)}, true},
		"an argument removed": {map[string]any{"filter": nil, "arguments": raw(
			`{"type":"object","properties":{"job":{"type":"string"}},"required":["job"]}`)}, true},
		"an argument narrowed": {map[string]any{"arguments": raw(
			`{"type":"object","properties":{"job":{"type":"string"},"level":{"type":"string","enum":["a"]}},"required":["job"]}`)}, true},
		"another one required": {map[string]any{"arguments": raw(
			`{"type":"object","properties":{"job":{"type":"string"},"level":{"type":"string"}},"required":["job","level"]}`)}, true},
		"a payload field removed": {map[string]any{"payload": raw(
			`{"type":"object","properties":{"level":{"type":"string"}}}`)}, true},
		"routed otherwise": {map[string]any{"topic": "ev/crawl/{job}"}, true},
		"personal":         {map[string]any{"personal": true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := parse(t, entry(test.change)).Events["crawl.finished"]
			if reason := crawl(t).Breaks(next); (reason != "") != test.breaks {
				t.Errorf("breaks: %q, want %v", reason, test.breaks)
			}
		})
	}
}

func TestBind(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments string
		topic     string // empty: refused
		filter    wake.Filter
		canonical string
	}{
		"plain":          {`{"job":"j1"}`, "ev/crawl.finished/j1", nil, `{"job":"j1"}`},
		"with a filter":  {`{ "level":"high", "job":"a.b_c-9"}`, "ev/crawl.finished/a.b_c-9", wake.Filter{"level": json.RawMessage(`"high"`)}, `{"job":"a.b_c-9","level":"high"}`},
		"none":           {``, "", nil, ""},
		"null":           {`null`, "", nil, ""},
		"missing":        {`{}`, "", nil, ""},
		"mistyped":       {`{"job":7}`, "", nil, ""},
		"null argument":  {`{"job":null}`, "", nil, ""},
		"unknown":        {`{"job":"j","more":1}`, "", nil, ""},
		"upper case":     {`{"job":"Upper"}`, "", nil, ""},
		"slash":          {`{"job":"a/b"}`, "", nil, ""},
		"empty":          {`{"job":""}`, "", nil, ""},
		"newline":        {`{"job":"a\n"}`, "", nil, ""},
		"NUL":            {`{"job":"a\u0000"}`, "", nil, ""},
		"wildcard":       {`{"job":"*"}`, "", nil, ""},
		"placeholder":    {`{"job":"{job}"}`, "", nil, ""},
		"not ASCII":      {`{"job":"ü"}`, "", nil, ""},
		"a list":         {`[]`, "", nil, ""},
		"a text":         {`"job"`, "", nil, ""},
		"over the limit": {`{"job":"` + strings.Repeat("x", wake.MaxRouteValue+1) + `"}`, "", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := crawl(t).Bind(json.RawMessage(test.arguments))
			if test.topic == "" {
				if !refusal.Is(err, refusal.BadArguments) {
					t.Errorf("got %v, want bad_arguments", err)
				}
				return
			}
			want := wake.Arguments{Canonical: json.RawMessage(test.canonical), Topic: test.topic, Filter: test.filter}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

func TestBindRoutesByValue(t *testing.T) {
	t.Parallel()
	e := parse(t, entry(map[string]any{"filter": nil, "topic": "ev/typed/{flag}/{number}/{word}", "arguments": json.RawMessage(
		`{"type":"object","properties":{"flag":{"type":"boolean"},"number":{"type":"integer"},"word":{"type":"string"}},"required":["flag","number","word"]}`)})).Events["crawl.finished"]
	for arguments, topic := range map[string]string{
		`{"flag":true,"number":42,"word":"w"}`:                               "ev/typed/true/42/w",
		`{"flag":false,"number":-42,"word":"w"}`:                             "ev/typed/false/-42/w",
		`{"flag":true,"number":42.0,"word":"w"}`:                             "ev/typed/true/42/w",
		`{"flag":true,"number":4.2e1,"word":"w"}`:                            "ev/typed/true/42/w",
		`{"flag":true,"number":-0,"word":"w"}`:                               "ev/typed/true/0/w",
		`{"flag":true,"number":9007199254740993,"word":"w"}`:                 "ev/typed/true/9007199254740993/w",
		`{"flag":true,"number":1e300,"word":"w"}`:                            "",
		`{"flag":true,"number":1e999999999,"word":"w"}`:                      "",
		`{"flag":"true","number":42,"word":"w"}`:                             "",
		`{"flag":true,"number":4.5,"word":"w"}`:                              "",
		`{"flag":true,"number":` + strings.Repeat("9", 400) + `,"word":"w"}`: "",
	} {
		got, err := e.Bind(json.RawMessage(arguments))
		if got.Topic != topic || (err != nil) != (topic == "") {
			t.Errorf("%.60s: %q, %v; want %q", arguments, got.Topic, err, topic)
		}
	}
}

func TestCheckPayload(t *testing.T) {
	t.Parallel()
	e := crawl(t)
	for payload, good := range map[string]bool{
		`{"pages":1}`: true, `{"pages":1.0,"level":"x","more":[{}]}`: true,
		`{}`: false, `{"pages":"1"}`: false, `{"pages":1.5}`: false, `{"pages":null}`: false, `{"pages":true}`: false, `{"pages":[1]}`: false,
		`[]`: false, `"text"`: false, `7`: false, `null`: false, ``: false,
	} {
		err := e.CheckPayload(json.RawMessage(payload))
		if good != (err == nil) || err != nil && !refusal.Is(err, refusal.BadPayload) {
			t.Errorf("%s: %v", payload, err)
		}
	}
}

func TestRefusalsDoNotRepeatThePayload(t *testing.T) {
	t.Parallel()
	e := parse(t, entry(map[string]any{"payload": json.RawMessage(`{"type":"object","properties":{"s":{"type":"string","enum":["a"]}}}`)})).Events["crawl.finished"]
	err := e.CheckPayload(json.RawMessage(`{"s":"secret-canary"}`))
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
}

func FuzzBind(f *testing.F) {
	for _, seed := range []string{`{"job":"j1"}`, `{"job":"j1","level":"x"}`, `{}`, `[]`, `{"job":1e999}`, `{"job":"\ud800"}`} {
		f.Add(seed)
	}
	m, err := wake.ParseManifest(json.RawMessage(`{"events":[` + entry(nil) + `]}`))
	if err != nil {
		f.Fatal(err)
	}
	e := m.Events["crawl.finished"]
	f.Fuzz(func(t *testing.T, arguments string) {
		got, err := e.Bind(json.RawMessage(arguments))
		if err != nil {
			if !refusal.Is(err, refusal.BadArguments) {
				t.Errorf("%v", err)
			}
			return
		}
		if strings.ContainsAny(strings.TrimPrefix(got.Topic, "ev/crawl.finished/"), "/{} \n") {
			t.Errorf("topic %q", got.Topic)
		}
		again, err := e.Bind(got.Canonical)
		if err != nil || again.Topic != got.Topic || string(again.Canonical) != string(got.Canonical) {
			t.Errorf("canonical arguments bind otherwise: %+v, %v", again, err)
		}
	})
}
