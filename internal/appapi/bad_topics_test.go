package appapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rouse-dev/rouse/internal/wake"
)

// topicWith is a subscription to a topic with more members.
func topicWith(more string) string { return `{"call":{"user":"ada"},"topic":"x"` + more + `}` }

const spanForm = `must be a whole number of seconds, or a text such as "90s", "5m", "12h" or "7d"`

var badTopicSubscriptions = table{
	"nothing":              {`{}`, "bad_request: call: is missing"},
	"no topic":             {`{"call":{},"once":false}`, "bad_request: topic: is missing"},
	"topic a number":       {`{"call":{},"topic":7}`, "bad_request: topic: must be a string"},
	"topic empty":          {`{"call":{},"topic":""}`, "bad_request: topic: must not be empty"},
	"topic too long":       {`{"call":{},"topic":"` + long(513) + `"}`, "bad_request: topic: at most 512 characters"},
	"topic with a space":   {`{"call":{},"topic":"a b"}`, "bad_request: topic: printable characters without spaces"},
	"topic with NUL":       {`{"call":{},"topic":"a\u0000"}`, "bad_request: topic: printable characters without spaces"},
	"topic of an event":    {`{"call":{},"topic":"ev/crawl.finished/j"}`, "bad_request: topic: topics beginning with ev/"},
	"topic of the core":    {`{"call":{},"topic":"rouse/x"}`, "bad_request: topic: topics beginning with rouse/"},
	"topic of another":     {`{"call":{"user":"ada"},"topic":"u/bob/x"}`, "private_topic: topic: u/<user>/… is that user's own"},
	"once a number":        {topicWith(`,"once":1`), "bad_request: once: must be true or false"},
	"filter a string":      {topicWith(`,"filter":"f"`), "bad_request: filter: must be an object"},
	"filter by an object":  {topicWith(`,"filter":{"a":{}}`), `bad_request: filter."a": must be a string, number, boolean or null`},
	"filter of 21 fields":  {topicWith(`,"filter":{` + fields(21) + `}`), "bad_request: filter: at most 20 fields"},
	"ttl 0":                {topicWith(`,"ttl":0`), "bad_request: ttl: at least one second"},
	"ttl 0s":               {topicWith(`,"ttl":"0s"`), "bad_request: ttl: at least one second"},
	"ttl below 0":          {topicWith(`,"ttl":-1`), "bad_request: ttl: " + spanForm},
	"ttl a fraction":       {topicWith(`,"ttl":1.5`), "bad_request: ttl: " + spanForm},
	"ttl a word":           {topicWith(`,"ttl":"soon"`), "bad_request: ttl: " + spanForm},
	"ttl empty":            {topicWith(`,"ttl":""`), "bad_request: ttl: " + spanForm},
	"ttl a unit":           {topicWith(`,"ttl":"d"`), "bad_request: ttl: " + spanForm},
	"ttl true":             {topicWith(`,"ttl":true`), "bad_request: ttl: " + spanForm},
	"ttl of 366 days":      {topicWith(`,"ttl":"366d"`), "bad_request: ttl: between 1s and 365 days"},
	"ttl of many seconds":  {topicWith(`,"ttl":31536001`), "bad_request: ttl: between 1s and 365 days"},
	"ttl beyond all years": {topicWith(`,"ttl":99999999999999999999`), "bad_request: ttl: between 1s and 365 days"},
	"replay below 0":       {topicWith(`,"replay":"-5m"`), "bad_request: replay: " + spanForm},
	"replay of another":    {`{"call":{"user":"ada"},"topic":"u/bob/x","replay":"5m"}`, "private_topic: topic: u/<user>/… is that user's own"},
	"replay a word":        {topicWith(`,"replay":"all"`), "bad_request: replay: " + spanForm},
}

// fields are that many members of an object.
func fields(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = `"` + long(i+1) + `":1`
	}
	return strings.Join(list, ",")
}

var badPublishes = table{
	"nothing":            {`{}`, "bad_request: event: is missing"},
	"no topics":          {`{"event":{"text":"t"}}`, "bad_request: topics: between 1 and 100"},
	"topics a string":    {`{"topics":"x","event":{"text":"t"}}`, "bad_request: topics: must be an array"},
	"a topic a number":   {`{"topics":["x",7],"event":{"text":"t"}}`, "bad_request: topics[1]: must be a string"},
	"a topic empty":      {`{"topics":["x",""],"event":{"text":"t"}}`, "bad_request: topic: must not be empty"},
	"101 topics":         {`{"topics":["x"` + strings.Repeat(`,"x"`, 100) + `],"event":{"text":"t"}}`, "bad_request: topics: between 1 and 100"},
	"event a string":     {`{"topics":["x"],"event":"t"}`, "bad_request: event: must be an object"},
	"no text":            {`{"topics":["x"],"event":{}}`, "bad_request: event.text: must not be empty"},
	"text a number":      {`{"topics":["x"],"event":{"text":7}}`, "bad_request: event.text: must be a string"},
	"data a list":        {`{"topics":["x"],"event":{"text":"t","data":[1]}}`, "bad_request: event.data: must be an object"},
	"id a number":        {`{"topics":["x"],"event":{"text":"t","id":7}}`, "bad_request: event.id: must be a string"},
	"a topic of a event": {`{"topics":["ev/crawl.finished/j"],"event":{"text":"t"}}`, "bad_request: topic: topics beginning with ev/"},
}

var badSends = table{
	"nothing":           {`{}`, "bad_request: event: is missing"},
	"event a string":    {`{"event":"t"}`, "bad_request: event: must be an object"},
	"no text":           {`{"event":{}}`, "bad_request: event.text: must not be empty"},
	"text a number":     {`{"event":{"text":7}}`, "bad_request: event.text: must be a string"},
	"text too long":     {`{"event":{"text":"` + long(wake.MaxText+1) + `"}}`, "bad_request: event.text: at most 65536 bytes"},
	"data a list":       {`{"event":{"text":"t","data":[1]}}`, "bad_request: event.data: must be an object"},
	"data too large":    {`{"event":{"text":"t","data":{"x":"` + long(256<<10) + `"}}}`, "bad_payload: event.data: at most 262144 bytes"},
	"id too long":       {`{"event":{"text":"t","id":"` + long(257) + `"}}`, "bad_request: event.id: at most 256 characters"},
	"id with a newline": {`{"event":{"text":"t","id":"a\n"}}`, "bad_request: event.id: must not contain control characters"},
}

var badUnsubscribes = table{
	"nothing":            {`{}`, "bad_request: call or user: is missing"},
	"call a string":      {`{"call":"x"}`, "bad_request: call: must be an object"},
	"user empty":         {`{"user":""}`, "bad_request: user: must not be empty"},
	"topic a number":     {`{"user":"ada","topic":7}`, "bad_request: topic: must be a string"},
	"an unknown session": {`{"call":{"session":"x"}}`, "unknown_session: session: "},
}

var badCloses = table{
	"nothing":     {`{}`, "bad_request: topic: is missing"},
	"topic empty": {`{"topic":""}`, "bad_request: topic: must not be empty"},
	"topic true":  {`{"topic":true}`, "bad_request: topic: must be a string"},
}

var badAnnotates = table{
	"nothing":       {`{}`, "bad_request: call: is missing"},
	"call a number": {`{"call":7}`, "bad_request: call: must be an object"},
}

func TestPublishesOverTheirLimits(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for name, c := range map[string]bad{
		"text over its limit": {`{"topics":["x"],"event":{"text":"` + long(wake.MaxText+1) + `"}}`, fmt.Sprintf("text: at most %d bytes", wake.MaxText)},
		"id too long":         {`{"topics":["x"],"event":{"text":"t","id":"` + long(257) + `"}}`, "id: at most 256 characters"},
		"data too large":      {`{"topics":["x"],"event":{"text":"t","data":{"x":"` + long(256<<10) + `"}}}`, "at most 262144 bytes of compact JSON"},
	} {
		if got := l.app.send(t, "POST", "/topics/publish", c.body).says(t); !strings.HasSuffix(got, c.says) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestStatusOfBadTopics(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for query, says := range map[string]string{
		"":                       "bad_request: topic: must not be empty",
		"?topic=":                "bad_request: topic: must not be empty",
		"?topic=%zz":             "bad_request: topic: must not be empty",
		"?topic=a%20b":           "bad_request: topic: printable characters without spaces",
		"?topic=" + long(513):    "bad_request: topic: at most 512 characters",
		"?topic=ev/x&topic=good": "bad_request: topic: topics beginning with ev/",
	} {
		if got := l.app.send(t, "GET", "/topics/status"+query, "").says(t); !strings.HasPrefix(got, says) {
			t.Errorf("%.30s: %s", query, got)
		}
	}
}
