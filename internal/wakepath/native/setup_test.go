package native_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/wake"
	"github.com/rouse-dev/rouse/internal/wakepath/native"
	"github.com/rouse-dev/rouse/internal/wakepath/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files anew")

// The clients of the two dialects.
var clients = map[string]wake.Call{
	"draft":   {Client: "some-client", User: "ada"},
	"chatgpt": {Client: "openai-mcp", User: "ada"},
}

// setup is a core that reaches receivers of the test.
func setup(t testing.TB, change ...func(*core.Options)) *coretest.Bench {
	t.Helper()
	sender := webhook.New(webhook.Options{AllowPrivate: true, AllowHTTP: true, Timeout: time.Minute})
	t.Cleanup(sender.Close)
	change = append(change, func(o *core.Options) { o.Webhooks = webhook.Endpoints{Sender: sender} })
	return coretest.New(t, change...)
}

// receiver serves an endpoint and gives its URL.
func receiver(t testing.TB, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

// echo passes a verification.
func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }

const (
	secret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	another = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

// about are params about an event of the site, with more members.
func about(more string) string {
	return `{"name":"site.updated","arguments":{"site":"s"}` + more + `}`
}

// by is a delivery.
func by(url, secret string) string {
	return `,"delivery":{"mode":"webhook","url":"` + url + `","secret":"` + secret + `"}`
}

// A transcript is an exchange of a client with the core.
type transcript struct {
	testing.TB
	bench *coretest.Bench
	call  wake.Call
	text  bytes.Buffer
}

// golden runs an exchange and compares it with its golden file.
func golden(t *testing.T, b *coretest.Bench, name string, call wake.Call, exchange func(s *transcript)) {
	t.Helper()
	s := &transcript{TB: t, bench: b, call: call}
	exchange(s)
	compare(t, name, placeholders(s.text.String()))
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got, -update writes it anew):\n%s", path, diff)
	}
}

func (s *transcript) poll(params string) native.Answer {
	return s.ask("events/poll", native.Poll, params)
}
func (s *transcript) subscribe(params string) native.Answer {
	return s.ask("events/subscribe", native.Subscribe, params)
}
func (s *transcript) unsubscribe(params string) native.Answer {
	return s.ask("events/unsubscribe", native.Unsubscribe, params)
}

// ask makes a request and writes down what was said.
func (s *transcript) ask(name string, method method, params string) native.Answer {
	s.Helper()
	got := request(s, s.bench, method, native.Request{Call: s.call, Params: json.RawMessage(params)})
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		s.Fatal(err)
	}
	fmt.Fprintf(&s.text, "%s %s\n→ %s\n\n", name, params, text)
	return got
}

// remark writes a line between exchanges.
func (s *transcript) remark(text string) { fmt.Fprintf(&s.text, "# %s\n", text) }

var (
	names  = regexp.MustCompile(`sub_[a-z2-7]{16,32}|evt_[a-z2-7]{4}[0-9a-z]+|c1\.[a-z2-7]{4}\.[0-9a-z]+|wsv_[a-z2-7]{32}|http://127\.0\.0\.1:\d\d+`)
	kinds  = map[string]string{"su": "subscription", "ev": "event", "c1": "cursor", "ws": "voucher", "ht": "receiver"}
	moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)
)

// placeholders replaces what differs from run to run. The same thing gets the same number.
func placeholders(text string) string {
	known, count := map[string]string{}, map[string]int{}
	return names.ReplaceAllStringFunc(moment.ReplaceAllString(text, "‹time›"), func(name string) string {
		if known[name] == "" {
			kind := kinds[name[:2]]
			count[kind]++
			known[name] = fmt.Sprintf("‹%s %d›", kind, count[kind])
		}
		return known[name]
	})
}
