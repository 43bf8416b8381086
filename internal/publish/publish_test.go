package publish_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/publish"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A sender posts to publish URLs.
type sender struct {
	*coretest.Bench
	handler http.Handler
}

func setup(t *testing.T) *sender {
	b := coretest.New(t)
	return &sender{b, publish.New(b.Core, publish.Options{})}
}

func (s *sender) send(method, url, body string, header ...string) (status int, answer map[string]any) {
	s.Helper()
	r := httptest.NewRequestWithContext(s.Context(), method, strings.TrimPrefix(url, coretest.PublicURL), strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		s.Fatalf("%d %q: %v", w.Code, w.Body, err)
	}
	return w.Code, answer
}

func code(answer map[string]any) any {
	detail, _ := answer["error"].(map[string]any)
	return detail["code"]
}

func (s *sender) eventURL(job string) (wake.PublishURL, string) {
	s.Helper()
	made, url, err := s.Core.EventPublishURL(s.Context(), s.App, "crawl.finished", json.RawMessage(`{"job":"`+job+`"}`), "")
	if err != nil {
		s.Fatal(err)
	}
	return made, url
}

// held reads what waits for a conversation nobody can wake.
func (s *sender) held(session string) string {
	s.Helper()
	added, _, err := s.Core.Annotate(s.Context(), s.App, wake.Call{Client: "some-client", Session: session})
	if err != nil {
		s.Fatal(err)
	}
	return added.Text
}

func TestAnEventsURLEmits(t *testing.T) {
	t.Parallel()
	s := setup(t)
	session := s.Subscribe(wake.Call{Client: "some-client"}, "j1", false).Session
	_, url := s.eventURL("j1")
	if status, answer := s.send("POST", url, `{"pages":7}`); status != 200 || !cmp.Equal(answer, map[string]any{"matched": 1.0}) {
		t.Errorf("%d %v", status, answer)
	}
	if text := s.held(session); !strings.Contains(text, `crawl.finished: {"pages":7}`) {
		t.Errorf("it arrived as %q", text)
	}
}

func TestAnIDCountsOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, url := s.eventURL("j1")
	for _, header := range []string{"Webhook-Id", "Idempotency-Key"} {
		for i, want := range []any{nil, true} {
			if _, answer := s.send("POST", url, `{"pages":7}`, header, "id of "+header); answer["duplicate"] != want {
				t.Errorf("%s, time %d: %v", header, i+1, answer)
			}
		}
	}
}

func TestATopicsURLTakesObjectsAndText(t *testing.T) {
	t.Parallel()
	s := setup(t)
	done, err := s.Core.SubscribeTopic(t.Context(), s.App, wake.Call{Client: "some-client"}, "builds", core.TopicOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, url, err := s.Core.TopicPublishURL(t.Context(), s.App, "builds")
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{"build":7}`, "build 8 is done", `["build 9"]`} {
		if status, answer := s.send("POST", url, body); status != 200 {
			t.Errorf("%s: %d %v", body, status, answer)
		}
	}
	text := s.held(done.Session)
	for _, want := range []string{`{"build":7}`, "build 8 is done", "build 9"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := setup(t)
	made, url := s.eventURL("j1")
	_, topic, err := s.Core.TopicPublishURL(t.Context(), s.App, "builds")
	if err != nil {
		t.Fatal(err)
	}
	revoked, gone := s.eventURL("j1")
	for range 2 {
		if err := s.Core.RevokePublishURL(t.Context(), s.App, revoked.ID); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		method, url, body string
		status            int
		code              refusal.Code
	}{
		"revoked":             {"POST", gone, `{"pages":1}`, 410, refusal.Gone},
		"altered":             {"POST", url[:len(url)-4] + "aaaa", `{"pages":1}`, 404, refusal.UnknownPublishURL},
		"the id":              {"POST", coretest.PublicURL + core.PublishPath + made.ID, `{"pages":1}`, 404, refusal.UnknownPublishURL},
		"GET":                 {"GET", url, ``, 405, refusal.MethodNotAllowed},
		"no token":            {"POST", coretest.PublicURL + core.PublishPath, `{}`, 405, refusal.MethodNotAllowed},
		"payload mistyped":    {"POST", url, `{"pages":"x"}`, 400, refusal.BadPayload},
		"payload a list":      {"POST", url, `[1]`, 400, refusal.BadPayload},
		"a key twice":         {"POST", url, `{"pages":1,"pages":2}`, 400, refusal.BadRequest},
		"empty":               {"POST", topic, ``, 400, refusal.BadRequest},
		"over the limit":      {"POST", url, `{"pages":1,"note":"` + strings.Repeat("x", wake.MaxPayload) + `"}`, 400, refusal.BadPayload},
		"far over the limit":  {"POST", url, `{"pages":1,"note":"` + strings.Repeat("x", 3<<20) + `"}`, 413, refusal.TooLarge},
		"text over the limit": {"POST", topic, strings.Repeat("x", wake.MaxText+1), 400, refusal.BadRequest},
		"no UTF-8":            {"POST", topic, "\xff\xfe", 400, refusal.BadRequest},
	} {
		status, answer := s.send(test.method, test.url, test.body)
		if status != test.status || code(answer) != string(test.code) {
			t.Errorf("%s: %d %v, want %d %s", name, status, answer, test.status, test.code)
		}
	}
}

func TestURLsBelongToTheirApp(t *testing.T) {
	t.Parallel()
	s := setup(t)
	made, url := s.eventURL("j1")
	other, _ := s.NewApp("other")
	if err := s.Core.RevokePublishURL(t.Context(), other, made.ID); !refusal.Is(err, refusal.UnknownPublishURL) {
		t.Errorf("another app revoked it: %v", err)
	}
	if status, _ := s.send("POST", url, `{"pages":1}`); status != 200 {
		t.Errorf("answered %d", status)
	}
	if err := s.Core.DeleteApp(t.Context(), s.App.ID); err != nil {
		t.Fatal(err)
	}
	if status, answer := s.send("POST", url, `{"pages":1}`); status != 404 {
		t.Errorf("after its app was deleted: %d %v", status, answer)
	}
}

func TestMakingRefusals(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for name, test := range map[string]struct {
		event, arguments, to string
		code                 refusal.Code
	}{
		"unknown event": {"no.such", `{}`, "", refusal.UnknownEvent}, "arguments": {"crawl.finished", `{}`, "", refusal.BadArguments},
		"to": {"crawl.finished", `{"job":"j"}`, "ada", refusal.BadArguments},
	} {
		if _, _, err := s.Core.EventPublishURL(t.Context(), s.App, test.event, json.RawMessage(test.arguments), test.to); !refusal.Is(err, test.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := s.Core.TopicPublishURL(t.Context(), s.App, "ev/x"); !refusal.Is(err, refusal.BadRequest) {
		t.Errorf("an event's topic: %v", err)
	}
}
