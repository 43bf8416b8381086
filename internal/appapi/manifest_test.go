package appapi_test

import (
	"strings"
	"testing"
)

func TestBadManifestsChangeNothing(t *testing.T) {
	t.Parallel()
	l := setup(t)
	l.app.post(t, "/event-subscriptions", subscribeJob(`"client":"claude-code"`, "j"))
	event := func(change string) string {
		fields := strings.NewReplacer(
			"NAME", `"name":"a.b"`, "DESCRIPTION", `"description":"d"`, "TOPIC", `"topic":"ev/a.b/{job}"`, "PAYLOAD", `"payload":{"type":"object"}`,
			"ARGUMENTS", `"arguments":{"type":"object","properties":{"job":{"type":"string"}}}`).Replace(change)
		return `{"events":[{` + fields + `}]}`
	}
	for name, c := range map[string]bad{
		"events an object":     {`{"events":{}}`, "bad_request: events: must be a list of events"},
		"events of strings":    {`{"events":["x"]}`, "bad_request: events[0]: must be an object"},
		"events of null":       {`{"events":[null]}`, "bad_request: events[0]: must be an object"},
		"2,001 events":         {`{"events":[{}` + strings.Repeat(`,{}`, 2000) + `]}`, "bad_request: events: at most 2000"},
		"no name":              {event(`DESCRIPTION,TOPIC,ARGUMENTS,PAYLOAD`), "bad_request: events[0].name: is missing"},
		"name a number":        {event(`"name":7,DESCRIPTION,TOPIC,ARGUMENTS,PAYLOAD`), "bad_request: events[0]: name: has the wrong type, number"},
		"name in capitals":     {event(`"name":"A.b",DESCRIPTION,TOPIC,ARGUMENTS,PAYLOAD`), `bad_request: events[0].name: event name "A.b": up to five words joined by dots, each of a-z 0-9 _ - and beginning with a letter`},
		"name too long":        {event(`"name":"` + long(65) + `",DESCRIPTION,TOPIC,ARGUMENTS,PAYLOAD`), "bad_request: events[0].name: event name: at most 64 characters"},
		"name reserved":        {event(`"name":"wakeshift.x",DESCRIPTION,TOPIC,ARGUMENTS,PAYLOAD`), `bad_request: events[0].name: event name "wakeshift.x": names beginning with wakeshift. are reserved`},
		"no description":       {event(`NAME,TOPIC,ARGUMENTS,PAYLOAD`), "bad_request: event a.b: description is missing"},
		"no payload":           {event(`NAME,DESCRIPTION,TOPIC,ARGUMENTS`), "bad_request: event a.b: payload: must be a JSON Schema object"},
		"no topic":             {event(`NAME,DESCRIPTION,ARGUMENTS,PAYLOAD`), "bad_request: event a.b: topic is missing"},
		"topic of no argument": {event(`NAME,DESCRIPTION,"topic":"ev/{x}",ARGUMENTS,PAYLOAD`), `bad_request: event a.b: topic: the event has no argument "x"`},
		"arguments of a list":  {event(`NAME,DESCRIPTION,TOPIC,PAYLOAD,"arguments":{"type":"array"}`), `bad_request: event a.b: arguments: must be a JSON Schema with "type":"object"`},
		"a schema unknown":     {event(`NAME,DESCRIPTION,TOPIC,ARGUMENTS,"payload":{"type":"object","properties":{"n":{"type":"thing"}}}`), `bad_request: event a.b: payload: is no JSON Schema: there is no type "thing"`},
		"an argument's name":   {event(`NAME,DESCRIPTION,"topic":"x",PAYLOAD,"arguments":{"type":"object","properties":{"a-b":{}}}`), `bad_request: event a.b: argument "a-b": a-z 0-9 _, beginning with a letter, at most 64 characters`},
		"a name twice": {`{"events":[` + strings.Repeat(strings.TrimSuffix(strings.TrimPrefix(event(`NAME,DESCRIPTION,TOPIC,ARGUMENTS,PAYLOAD`), `{"events":[`), `]}`)+",", 2) +
			`{}]}`, "bad_request: events[1].name: a.b is there twice"},
	} {
		if got := l.app.send(t, "PUT", "/manifest", c.body).says(t); !strings.HasPrefix(got, c.says) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.says)
		}
	}
	if got := l.app.post(t, "/events/emit", emitJob("j", "t")); got["matched"] != 1.0 {
		t.Errorf("a refused manifest ended a subscription: %v", got)
	}
	refuses(t, l, "/events/emit", table{"an event of a refused manifest": {`{"name":"a.b","payload":{}}`, `unknown_event: the app's manifest has no event "a.b"`}})
}
