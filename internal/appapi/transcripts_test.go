package appapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/wakepath/webhook"
)

func TestTheApp(t *testing.T) {
	t.Parallel()
	golden(t, setup(t), "app", func(s *transcript) { s.ask("GET", "/app", "").good(s) })
}

func TestTheManifest(t *testing.T) {
	t.Parallel()
	golden(t, setup(t), "manifest", func(s *transcript) {
		s.ask("PUT", "/manifest", `{"version":"1.50","events":[{"name":"your.turn","description":"Your turn <b>& more","topic":"ev/your.turn/{game}",`+
			`"personal":true,"arguments":{"type":"object","properties":{"game":{"type":"string"}},"required":["game"]},`+
			`"payload":{"type":"object"},"x-ours":[1.0,1e2]}]}`).good(s)
		s.ask("PUT", "/manifest", `{"title":"no word of events"}`).good(s)
		s.ask("PUT", "/manifest", `{"events":[]}`).good(s)
	})
}

func TestEmitting(t *testing.T) {
	t.Parallel()
	golden(t, setup(t), "emit", func(s *transcript) {
		s.send(s, "POST", "/event-subscriptions", subscribeJob(`"client":"claude-code"`, "j1")).good(s)
		s.post("/events/emit", `{"name":"crawl.finished","arguments":{"job":"j1"},"payload":{"pages":12},"text":"Crawl j1 finished","id":"run-1"}`)
		s.post("/events/emit", `{"name":"crawl.finished","arguments":{"job":"j1"},"payload":{"pages":13},"text":"Crawl j1 finished","id":"run-1"}`)
		s.post("/events/emit", `{"name":"crawl.finished","arguments":{"job":"j2"},"payload":{"pages":12}}`)
	})
}

func TestSubscribing(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for name, call := range map[string]string{
		"monitor": `"client":"claude-code","client_version":"2.1.0","user":"ada","tool":"watch_crawl"`,
		"connector": `"client":"codex-mcp-client","user":"ada","tool":"watch_crawl",` +
			`"meta":{"x-codex-turn-metadata":{"thread_id":"0199-thread"}}`,
		"voucher": `"client":"openai-mcp","user_agent":"openai-mcp/1.0.0"`,
		"held":    `"client":"Cursor","conversation":"chat-1","harness":"something else"`,
		"native":  `"client":"some-client","extensions":["io.modelcontextprotocol/events"]`,
	} {
		golden(t, l, "subscribe-"+name, func(s *transcript) {
			made := s.post("/event-subscriptions", subscribeJob(call, "j1"))
			again := call + `,"session":"` + made["session"].(string) + `"`
			s.post("/event-subscriptions", subscribeJob(again, "j1"))
			s.post("/event-subscriptions/unsubscribe", subscribeJob(again, "j1"))
			s.post("/event-subscriptions/unsubscribe", subscribeJob(again, "j1"))
		})
	}
}

func TestAUsersSubscriptions(t *testing.T) {
	t.Parallel()
	l := setup(t, withWebhooks(t))
	golden(t, l, "user", func(s *transcript) {
		made := s.send(s, "POST", "/event-subscriptions", subscribeJob(`"client":"claude-code","user":"ada"`, "j1")).good(s)
		s.send(s, "POST", "/events/subscribe", `{"call":{"user":"ada"},"name":"site.updated","arguments":{"site":"s"},`+endpoint(s, "/hooks")+`}`).good(s)
		s.post("/event-subscriptions/list", `{"user":"ada"}`)
		s.post("/event-subscriptions/end", `{"user":"ada","id":"`+made.at("event_subscription", "id").(string)+`"}`)
		s.post("/event-subscriptions/end", `{"user":"ada","id":"`+made.at("event_subscription", "id").(string)+`"}`)
		listed := s.post("/event-subscriptions/list", `{"user":"ada"}`)["subscriptions"].([]any)[0].(map[string]any)
		s.post("/event-subscriptions/end", `{"user":"ada","id":"`+listed["id"].(string)+`"}`)
		s.post("/event-subscriptions/list", `{"user":"ada"}`)
		s.post("/event-subscriptions/list", `{"user":"nobody"}`)
	})
}

// withWebhooks lets the core reach receivers of the test.
func withWebhooks(t *testing.T) func(*core.Options) {
	sender := webhook.New(webhook.Options{AllowPrivate: true, AllowHTTP: true, Timeout: time.Minute})
	t.Cleanup(sender.Close)
	return func(o *core.Options) { o.Webhooks = webhook.Endpoints{Sender: sender} }
}

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// endpoint is the delivery to a receiver that passes its verification, by echoing what it is sent.
func endpoint(t testing.TB, path string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	t.Cleanup(server.Close)
	return `"delivery":{"mode":"webhook","url":"` + server.URL + path + `","secret":"` + secret + `"}`
}

func TestNativeRequests(t *testing.T) {
	t.Parallel()
	l := setup(t, withWebhooks(t))
	delivery := endpoint(t, "/hooks")
	golden(t, l, "native", func(s *transcript) {
		cursor := s.post("/events/poll", `{"call":{"client":"some-client"},"params":{"name":"site.updated","arguments":{"site":"s"},"cursor":null}}`).at("result", "cursor")
		s.send(s, "POST", "/events/emit", `{"name":"site.updated","arguments":{"site":"s"},"payload":{"pages":3},"text":"s changed"}`).good(s)
		s.post("/events/poll", fmt.Sprintf(`{"call":{"client":"some-client"},"params":{"name":"site.updated","arguments":{"site":"s"},"cursor":%q}}`, cursor))
		s.post("/events/subscribe", `{"call":{"client":"some-client","user":"ada"},"params":{"name":"site.updated","arguments":{"site":"s"},`+delivery+`,"ttlMs":null}}`)
		s.post("/events/unsubscribe", `{"call":{"client":"some-client","user":"ada"},"params":{"name":"site.updated","arguments":{"site":"s"},`+delivery+`}}`)
		s.post("/events/unsubscribe", `{"call":{"client":"some-client","user":"ada"},"params":{"name":"site.updated","arguments":{"site":"s"},`+delivery+`}}`)
		s.post("/events/unsubscribe", `{"call":{"client":"openai-mcp","user":"ada"},"params":{"name":"site.updated","arguments":{"site":"s"},`+delivery+`}}`)
		s.post("/events/poll", `{"call":{"client":"some-client"},"refused":true,"params":{"name":"site.updated","arguments":{"site":"s"}}}`)
	})
}

func TestNativeRequestsInTheFlatForm(t *testing.T) {
	t.Parallel()
	l := setup(t, withWebhooks(t))
	delivery := endpoint(t, "/hooks")
	golden(t, l, "native-flat", func(s *transcript) {
		about := `{"call":{"client":"openai-mcp","user":"ada"},"name":"site.updated","arguments":{"site":"s"},"dialect":"chatgpt",` + delivery
		s.post("/events/subscribe", about+`,"ttl_ms":3600000,"cursor":"c0","max_age_ms":300000}`)
		s.post("/events/subscribe", about+`,"ttl_ms":null}`)
		s.post("/events/unsubscribe", about+`}`)
		s.post("/events/unsubscribe", about+`}`)
	})
}

func TestTopics(t *testing.T) {
	t.Parallel()
	l := setup(t)
	golden(t, l, "topics", func(s *transcript) {
		made := s.post("/topics/subscribe", `{"call":{"client":"claude-code","user":"ada"},"topic":"news","once":false,"filter":{"level":"high","n":1.0},"ttl":"5m"}`)
		s.post("/topics/publish", `{"topics":["news","weather"],"event":{"text":"It rains","data":{"level":"high","n":1},"id":"n1"}}`)
		s.post("/topics/publish", `{"topics":["news","weather"],"event":{"text":"It rains","data":{"level":"high","n":1},"id":"n1"}}`)
		s.post("/topics/publish", `{"topics":["news"],"event":{"text":"no data"}}`)
		s.ask("GET", "/topics/status?topic=news", "").good(s)

		token := regexp.MustCompile(`/w/([^']+)'`).FindStringSubmatch(made.at("addition", "text").(string))[1]
		stream, err := l.Core.OpenStream(s.Context(), token)
		if err != nil {
			s.Fatal(err)
		}
		defer stream.Close()
		s.ask("GET", "/topics/status?topic=news", "").good(s)

		call := `"call":{"client":"claude-code","user":"ada","session":"` + made["session"].(string) + `"}`
		s.post("/topics/subscribe", `{`+call+`,"topic":"u/ada/mine","once":true,"ttl":60}`)
		s.post("/topics/unsubscribe", `{`+call+`,"topic":"u/ada/mine"}`)
		s.post("/topics/close", `{"topic":"news"}`)
		s.post("/topics/close", `{"topic":"news"}`)
		s.post("/topics/unsubscribe", `{"user":"ada"}`)
	})
}

func TestAnnotating(t *testing.T) {
	t.Parallel()
	golden(t, setup(t), "annotate", func(s *transcript) {
		s.post("/topics/annotate", `{"call":{"client":"Cursor","user":"ada","conversation":"chat-1","tool":"search"}}`)
		made := s.send(s, "POST", "/event-subscriptions", subscribeJob(`"client":"Cursor","user":"ada","conversation":"chat-1"`, "j1")).good(s)
		s.send(s, "POST", "/events/emit", emitJob("j1", "Crawl <b>j1</b> finished")).good(s)
		call := `{"call":{"client":"Cursor","user":"ada","session":"` + made["session"].(string) + `"}}`
		s.post("/topics/annotate", call)
		s.post("/topics/annotate", call)

		watching := s.send(s, "POST", "/event-subscriptions", subscribeJob(`"client":"claude-code"`, "j1")).good(s)
		s.send(s, "POST", "/events/emit", emitJob("j1", "Crawl j1 finished")).good(s)
		s.post("/topics/annotate", `{"call":{"client":"claude-code","session":"`+watching["session"].(string)+`"}}`)
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	golden(t, setup(t), "errors", func(s *transcript) {
		s.ask("POST", "/events/emit", `{"name":"no.such","arguments":{},"payload":{}}`)
		s.ask("POST", "/events/emit", `{"name":"crawl.finished","arguments":{"job":"j1"},"payload":{"pages":"many"}}`)
		s.ask("POST", "/topics/annotate", `{"call":{"client":"Cursor","session":"wsk_of_another"}}`)
		s.ask("POST", "/topics/subscribe", `{"call":{"user":"ada"},"topic":"u/bob/his"}`)
		s.ask("POST", "/events/subscribe", `{"call":{"user":"ada"},"name":"site.updated","arguments":{"site":"s"},"delivery":{"url":"https://receiver.example/","secret":"whsec_"}}`)
		s.ask("GET", "/topics/publish", "")
		s.ask("GET", "/no-such-route", "")
	})
}
