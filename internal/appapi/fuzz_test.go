package appapi_test

import (
	"net/http"
	"testing"

	"github.com/rouse-dev/rouse/internal/refusal"
)

// FuzzBody sends whatever it likes: an answer is always one JSON object, a refusal is in the catalogue's form, and nothing is
// ever the core's fault.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `{"name":"crawl.finished"}`, emitJob("j", "t"), emitJob("J", "\x00"),
		subscribeJob(`"client":"claude-code"`, "j"), subscribeJob(`"meta":{"x-codex-turn-metadata":"{\"thread_id\":\"t\"}"}`, "j"),
		`{"call":{"client":"a\u0000"},"name":"site.updated","arguments":{"site":"s"},"once":true}`,
		`{"name":"site.updated","arguments":{"site":1e2},"payload":{"pages":1e0},"id":"x","to":"ada"}`,
		`{"name":"site.updated","arguments":{"site":"s"},"payload":{"pages":-0,"x":[1e308,{"y":null}]}}`,
		nested(66), `{"call":{"session":"wsk_"},"name":"crawl.finished","arguments":{}}`, `{"a":"\ud800"}`, `{"a":1e400}`,
	} {
		f.Add([]byte(seed))
	}
	l := setup(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/events/emit", "/event-subscriptions"} {
			got := l.app.send(t, http.MethodPost, path, string(body))
			if got.status == http.StatusOK {
				got.object(t)
				continue
			}
			if code, message := got.refused(t); got.status >= 500 || code == refusal.Unauthorized {
				t.Errorf("%s: %d %s: %s", path, got.status, code, message)
			}
		}
	})
}
