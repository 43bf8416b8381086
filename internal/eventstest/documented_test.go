package eventstest

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/server"
)

// documentedRow is a row of the table of errors: a name, the codes of the two columns, the HTTP status.
var documentedRow = regexp.MustCompile(`(?m)^\| ([A-Za-z ]+) \| (-\d+) \| (-\d+) \| (\d+) \|`)

// The table of errors in docs/events.md says what clients are really answered.
func TestDocumentedErrors(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range documentedRow.FindAllStringSubmatch(string(page), -1) {
		documented[row[1]] = strings.Join(row[2:], " ")
	}
	first, second := receiver(t, echo), receiver(t, echo)
	url := newApp(t, func(o *server.Options) { o.Limits.UserWebhooks = 1 }).serve(t, transports["JSON"])
	if answer := (ask{"", "events/subscribe", `{` + site + to(first) + `}`, "ada"}).send(t, url, "some-client"); !strings.Contains(answer, `"refreshBefore"`) {
		t.Fatal(answer)
	}
	away := withoutCore(t)
	answered := map[string]string{}
	for name, a := range map[string]ask{
		"InvalidParams":         {"", "events/poll", `{"name":7}`, "ada"},
		"NotFound":              {"", "events/poll", `{"name":"no.such"}`, "ada"},
		"Forbidden":             {"", "events/poll", `{"name":"crawl.finished","arguments":{"job":"j"}}`, "ada"},
		"ResourceExhausted":     {"", "events/subscribe", `{` + site + to(second) + `}`, "ada"},
		"Unsupported":           {"", "events/subscribe", `{` + site + `,"delivery":{"mode":"poll"}}`, "ada"},
		"CallbackEndpointError": {"", "events/subscribe", `{` + site + to("https://hook.invalid/") + `}`, "bob"},
		"method not found":      {"", "events/nope", `{}`, "ada"},
		"internal error":        {"", "events/poll", `{` + site + `}`, "ada"},
	} {
		asked := url
		if name == "internal error" {
			asked = away
		}
		answered[name] = codes(t, asked, a)
	}
	mismatch := raw{headers: map[string]string{"Mcp-Name": "other.updated"}}.send(t, url)
	status, code := codeOf(t, mismatch)
	answered["HeaderMismatch"] = strings.Join([]string{code, code, status}, " ") // one of the protocol, before anybody's dialect
	if diff := cmp.Diff(answered, documented); diff != "" {
		t.Errorf("docs/events.md (-answered +documented):\n%s", diff)
	}
}

// codes are those that a client of the draft and one of ChatGPT's dialect is answered, and the status. The draft's is Final's too, and
// the status is one.
func codes(t *testing.T, url string, a ask) string {
	t.Helper()
	status, code := map[string]string{}, map[string]string{}
	for _, dialect := range dialects {
		status[dialect.name], code[dialect.name] = codeOf(t, a.send(t, url+"/"+dialect.name, dialect.client))
	}
	if code["draft"] != code["final"] || status["draft"] != status["final"] || status["draft"] != status["chatgpt"] {
		t.Errorf("%s %s: %v %v", a.method, a.params, status, code)
	}
	return strings.Join([]string{code["draft"], code["chatgpt"], status["draft"]}, " ")
}

// codeOf takes the status and the error's code from what was answered.
func codeOf(t *testing.T, answer string) (status, code string) {
	t.Helper()
	status, body, _ := strings.Cut(answer, " ")
	var message struct{ Error struct{ Code json.Number } }
	if err := json.Unmarshal([]byte(body), &message); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	return status, message.Error.Code.String()
}
