package appapi_test

import (
	"strings"
	"testing"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/refusal"
)

func TestPublishURLsAreMadeAndRevoked(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for path, body := range map[string]string{
		"/events/publish-urls": `{"name":"crawl.finished","arguments":{"job":"j1"}}`,
		"/topics/publish-urls": `{"topic":"builds"}`,
	} {
		made := l.app.send(t, "POST", path, body).good(t)
		id, _ := made["id"].(string)
		url, _ := made["url"].(string)
		token, ok := strings.CutPrefix(url, coretest.PublicURL+core.PublishPath)
		if !ok || id == "" || len(token) < 40 {
			t.Errorf("%s: %v", path, made)
		}
		if made["event"] != "crawl.finished" && made["topic"] != "builds" {
			t.Errorf("%s does not say what it is for: %v", path, made)
		}
		for range 2 { // revoking again changes nothing
			l.app.send(t, "DELETE", "/events/publish-urls/"+id, "").good(t)
		}
	}
}

func TestPublishURLRefusals(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for _, test := range []struct {
		method, path, body string
		code               refusal.Code
	}{
		{"POST", "/events/publish-urls", `{}`, refusal.BadRequest},
		{"POST", "/events/publish-urls", `{"name":"no.such","arguments":{}}`, refusal.UnknownEvent},
		{"POST", "/events/publish-urls", `{"name":"crawl.finished","arguments":{"job":"Upper"}}`, refusal.BadArguments},
		{"POST", "/events/publish-urls", `{"name":"crawl.finished","arguments":{"job":"j"},"to":"ada"}`, refusal.BadArguments},
		{"POST", "/events/publish-urls", `{"name":7}`, refusal.BadRequest},
		{"POST", "/topics/publish-urls", `{}`, refusal.BadRequest},
		{"POST", "/topics/publish-urls", `{"topic":"a b"}`, refusal.BadRequest},
		{"DELETE", "/events/publish-urls/no-such", "", refusal.UnknownPublishURL},
	} {
		if code, _ := l.app.send(t, test.method, test.path, test.body).refused(t); code != test.code {
			t.Errorf("%s %s %s: %s, want %s", test.method, test.path, test.body, code, test.code)
		}
	}
}
