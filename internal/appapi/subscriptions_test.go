package appapi_test

import (
	"strings"
	"testing"

	"github.com/rouse-dev/rouse/internal/refusal"
)

// topicID makes a subscription to a topic, with more members, and gives its id and session key.
func (l *lab) topicID(call, topic, more string) (id, session string) {
	l.Helper()
	made := l.app.post(l, "/topics/subscribe", `{"call":{`+call+`},"topic":"`+topic+`"`+more+`}`)
	return made.at("subscription", "id").(string), made["session"].(string)
}

func TestOneSubscription(t *testing.T) {
	t.Parallel()
	l := setup(t)
	id, session := l.topicID(`"client":"Cursor"`, "news", `,"filter":{"level":"high"}`)
	other, otherSession := l.topicID(`"client":"Cursor"`, "news", "")
	waiting := func(session string) string {
		text, _ := l.app.post(t, "/topics/annotate", `{"call":{"client":"Cursor","session":"`+session+`"}}`)["text"].(string)
		return text
	}
	status := l.app.send(t, "GET", "/subscriptions/"+id, "").good(t)
	if status["id"] != id || status["topic"] != "news" || status["status"] != "active" || status["connected"] != false || status["expires_at"] == nil {
		t.Errorf("status %v", status)
	}
	const event = `{"event":{"text":"for you","data":{"level":"low"},"id":"one"}}`
	for range 2 { // the same id counts once
		if got := l.app.post(t, "/subscriptions/"+id+"/send", event); got["status"] != "queued" {
			t.Errorf("send: %v", got)
		}
	}
	if got := waiting(session); strings.Count(got, "- for you ") != 1 {
		t.Errorf("waiting: %s", got)
	}
	if got := waiting(otherSession); strings.Contains(got, "for you") {
		t.Errorf("another subscription got %s", got)
	}
	if got := l.app.post(t, "/subscriptions/"+other+"/send", event); got["status"] != "queued" || !strings.Contains(waiting(otherSession), "for you") {
		t.Errorf("an id that was used for another subscription: %v", got)
	}
	for _, want := range []bool{true, false} {
		if got := l.app.post(t, "/subscriptions/"+id+"/end", `{}`); got["ended"] != want {
			t.Errorf("end: %v, want %v", got, want)
		}
	}
	if got := waiting(session); !strings.Contains(got, "Your subscription to the topic news ended: the app crawler ended it.") {
		t.Errorf("told: %s", got)
	}
	if got := l.app.send(t, "GET", "/subscriptions/"+id, "").good(t); got["status"] != "ended" || got["connected"] != false {
		t.Errorf("status when ended %v", got)
	}
	if got := l.app.post(t, "/subscriptions/"+id+"/send", event); got["status"] != "closed" {
		t.Errorf("send when ended: %v", got)
	}
}

func TestOneSubscriptionOfAWebhook(t *testing.T) {
	t.Parallel()
	l := setup(t, withWebhooks(t))
	made := l.app.post(t, "/events/subscribe", `{"call":{"user":"ada"},"name":"site.updated","arguments":{"site":"s"},
		`+endpoint(t, "/")+`}`)
	path := "/subscriptions/" + made["id"].(string)
	status := l.app.send(t, "GET", path, "").good(t)
	if status["status"] != "active" || status["connected"] != true || status["via"] != "webhook" || status["topic"] != "ev/site.updated/s" {
		t.Errorf("status %v", status)
	}
	if got := l.app.send(t, "POST", path+"/send", `{"event":{"text":"t"}}`).says(t); got !=
		"unsupported: this is a webhook's subscription, which takes its event only: emit site.updated" {
		t.Errorf("send: %s", got)
	}
	if got := l.app.post(t, path+"/end", `{}`); got["ended"] != true {
		t.Errorf("end: %v", got)
	}
	for _, method := range []string{"GET", "POST"} {
		what := map[string]string{"GET": "", "POST": "/end"}[method]
		if code, _ := l.app.send(t, method, path+what, "{}").refused(t); code != refusal.UnknownSubscription {
			t.Errorf("%s when ended: %s", method, code)
		}
	}
}

// Another app's id, a made-up one, and what could be no id at all are the same.
func TestSubscriptionsThatAreNotThere(t *testing.T) {
	t.Parallel()
	l := setup(t)
	other := l.another()
	foreign := other.post(t, "/topics/subscribe", `{"call":{"client":"Cursor"},"topic":"x"}`).at("subscription", "id").(string)
	for _, id := range []string{foreign, "sub_aaaaaaaaaaaaaaaa", "x", "..%2Fapp", "%00", "%ff", "%E2%80%A8", long(3000)} {
		for _, call := range [][3]string{{"GET", "", ""}, {"POST", "/send", `{"event":{"text":"t"}}`}, {"POST", "/end", `{}`}} {
			code, message := l.app.send(t, call[0], "/subscriptions/"+id+call[1], call[2]).refused(t)
			if code != refusal.UnknownSubscription || !strings.HasPrefix(message, "there is no subscription ") {
				t.Errorf("%s %.20s%s: %s: %s", call[0], id, call[1], code, message)
			}
		}
	}
	if got := other.send(t, "GET", "/subscriptions/"+foreign, "").good(t); got["status"] != "active" {
		t.Errorf("the other app's: %v", got)
	}
}

func TestBadSends(t *testing.T) {
	t.Parallel()
	l := setup(t)
	id, _ := l.topicID(`"client":"Cursor"`, "news", "")
	refuses(t, l, "/subscriptions/"+id+"/send", badSends)
	refuses(t, l, "/subscriptions/"+id+"/end", table{"no object": {`[]`, "bad_request: must be a JSON object"}})
}

func TestAReplayOverHTTP(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for _, text := range []string{"first", "second"} {
		l.app.post(t, "/topics/publish", `{"topics":["news"],"event":{"text":"`+text+`","data":{"is":"`+text+`"}}}`)
	}
	for more, want := range map[string][]string{
		``:               {},
		`,"replay":0`:    {},
		`,"replay":300`:  {"- first ", "- second "},
		`,"replay":"5m"`: {"- first ", "- second "},
		`,"replay":"5m","filter":{"is":"second"}`: {"- second "},
		`,"replay":"5m","once":true`:              {"- first "},
	} {
		made := l.app.post(t, "/topics/subscribe", `{"call":{"client":"some-client"},"topic":"news"`+more+`}`)
		text, _ := made.at("addition", "text").(string)
		for _, line := range []string{"- first ", "- second "} {
			wanted := false
			for _, w := range want {
				wanted = wanted || w == line
			}
			if strings.Contains(text, line) != wanted {
				t.Errorf("%s: with %q: %v\n%s", more, line, !wanted, text)
			}
		}
	}
}
