package eventstest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rouse-dev/rouse/internal/server"
	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

const revision = "2026-07-28"

// The dialects, a client of each, and what an app says of it: for the first two the client is enough.
var dialects = []struct {
	name, client string
	option       wakeshift.Dialect
}{{"draft", "some-client", ""}, {"chatgpt", "openai-mcp", ""}, {"final", "some-client", wakeshift.DialectFinal}}

// An ask is one request of an events method.
type ask struct {
	about  string // what is wrong with it
	method string
	params string // a JSON object, without _meta
	user   string // who is signed in; empty: nobody
}

// message is the request for a client, as the revision wants it.
func (a ask) message(t *testing.T, client string) (headers map[string]string, body string) {
	t.Helper()
	var params map[string]json.RawMessage
	if err := json.Unmarshal([]byte(a.params), &params); err != nil {
		t.Fatalf("%s: %v", a.about, err)
	}
	headers = map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": revision, "Mcp-Method": a.method, "X-User": a.user}
	var name string
	if json.Unmarshal(params["name"], &name) == nil {
		headers["Mcp-Name"] = name
		if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
			headers["Mcp-Name"] = "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?="
		}
	}
	params["_meta"] = json.RawMessage(fmt.Sprintf(`{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{},`+
		`"io.modelcontextprotocol/clientInfo":{"name":%q,"version":"1"}}`, revision, client))
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": a.method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	return headers, string(message)
}

// send makes the request and returns what was answered, for a transcript.
func (a ask) send(t *testing.T, url, client string) string {
	t.Helper()
	headers, body := a.message(t, client)
	status, answer := post(t, "POST", url, headers, body)
	return fmt.Sprintf("%d %s", status, answer)
}

// refuses asks on each transport as a client of each dialect, and compares the transcript with its golden file.
func refuses(t *testing.T, name string, asks []ask, change ...func(*server.Options)) {
	t.Helper()
	transcripts := map[string]string{}
	for transport, options := range transports {
		url := newApp(t, change...).serve(t, options)
		transcripts[transport] = transcript(t, url, asks)
	}
	if transcripts["JSON"] != transcripts["SSE"] {
		t.Errorf("what is said depends on the transport:\n%s\n\n%s", transcripts["JSON"], transcripts["SSE"])
	}
	golden(t, name, transcripts["JSON"])
}

func transcript(t *testing.T, url string, asks []ask) string {
	t.Helper()
	var b strings.Builder
	for _, a := range asks {
		fmt.Fprintf(&b, "# %s\n%s %s", a.about, a.method, a.params)
		if a.user != "" {
			fmt.Fprintf(&b, " by %s", a.user)
		}
		b.WriteByte('\n')
		for _, dialect := range dialects {
			fmt.Fprintf(&b, "%s → %s\n", dialect.name, a.send(t, url+"/"+dialect.name, dialect.client))
		}
		b.WriteByte('\n')
	}
	return placeholders(b.String())
}

// A raw is a request of which any part may be wrong: a good events/poll, changed.
type raw struct {
	about   string
	verb    string            // empty: POST
	headers map[string]string // changed; empty values take a header out
	body    func(message string) string
}

func (r raw) send(t *testing.T, url string) string {
	t.Helper()
	headers, body := ask{r.about, "events/poll", `{"name":"site.updated","arguments":{"site":"a"}}`, ""}.message(t, "some-client")
	maps.Copy(headers, r.headers)
	if r.body != nil {
		body = r.body(body)
	}
	verb := "POST"
	if r.verb != "" {
		verb, body = r.verb, ""
	}
	status, answer := post(t, verb, url, headers, body)
	return fmt.Sprintf("%d %s", status, answer)
}

// with replaces a part of the message, which must be there.
func with(old, now string) func(string) string {
	return func(message string) string {
		changed := strings.Replace(message, old, now, 1)
		if changed == message {
			panic("the message has no " + old)
		}
		return changed
	}
}

// misses sends raw requests and compares the transcript with its golden file.
func misses(t *testing.T, name string, requests []raw) {
	t.Helper()
	url := newApp(t).serve(t, mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	var b strings.Builder
	for _, r := range requests {
		fmt.Fprintf(&b, "# %s\n→ %s\n\n", r.about, r.send(t, url))
	}
	golden(t, name, placeholders(b.String()))
}
