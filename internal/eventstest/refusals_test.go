package eventstest

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rouse-dev/rouse/internal/server"
)

const (
	site   = `"name":"site.updated","arguments":{"site":"a"}`
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// to is a delivery to a URL.
func to(url string) string {
	return fmt.Sprintf(`,"delivery":{"mode":"webhook","url":%q,"secret":%q}`, url, secret)
}

// receiver serves an endpoint.
func receiver(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

// echo passes a verification.
func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }

func TestInvalidParams(t *testing.T) {
	t.Parallel()
	hook := receiver(t, echo)
	delivery := func(url, secret string) string {
		return fmt.Sprintf(`{%s,"delivery":{"mode":"webhook","url":%q,"secret":%q}}`, site, url, secret)
	}
	refuses(t, "invalid-params", []ask{
		{"no name", "events/poll", `{"arguments":{}}`, "ada"},
		{"a name that is a number", "events/poll", `{"name":7}`, "ada"},
		{"an argument is missing", "events/poll", `{"name":"site.updated","arguments":{}}`, "ada"},
		{"no arguments", "events/poll", `{"name":"site.updated"}`, "ada"},
		{"an argument of another type", "events/poll", `{"name":"site.updated","arguments":{"site":7}}`, "ada"},
		{"an argument the event lacks", "events/poll", `{"name":"site.updated","arguments":{"site":"a","page":1}}`, "ada"},
		{"an argument that cannot route", "events/poll", `{"name":"site.updated","arguments":{"site":"A B"}}`, "ada"},
		{"arguments that are a list", "events/poll", `{"name":"site.updated","arguments":[]}`, "ada"},
		{"a cursor that is a number", "events/poll", `{` + site + `,"cursor":7}`, "ada"},
		{"maxEvents that is a text", "events/poll", `{` + site + `,"maxEvents":"7"}`, "ada"},
		{"maxEvents that is no whole number", "events/poll", `{` + site + `,"maxEvents":1.5}`, "ada"},
		{"maxEvents below 0", "events/poll", `{` + site + `,"maxEvents":-1}`, "ada"},
		{"maxAgeMs that is a text", "events/poll", `{` + site + `,"maxAgeMs":"5m"}`, "ada"},
		{"a cursor of a list that is none", "events/list", `{"cursor":"nonsense"}`, "ada"},
		{"a cursor of a list that is a number", "events/list", `{"cursor":7}`, "ada"},
		{"no delivery", "events/subscribe", `{` + site + `}`, "ada"},
		{"a delivery that is a text", "events/subscribe", `{` + site + `,"delivery":"webhook"}`, "ada"},
		{"a mode that is a number", "events/subscribe", `{` + site + `,"delivery":{"mode":7,"url":"https://hook.example/","secret":"` + secret + `"}}`, "ada"},
		{"no URL", "events/subscribe", `{` + site + `,"delivery":{"secret":"` + secret + `"}}`, "ada"},
		{"a URL without TLS", "events/subscribe", delivery("http://hook.example/", secret), "ada"},
		{"a URL of another scheme", "events/subscribe", delivery("ftp://hook.example/", secret), "ada"},
		{"a URL with a password", "events/subscribe", delivery("https://u:p@hook.example/", secret), "ada"},
		{"a URL that is none", "events/subscribe", delivery("::", secret), "ada"},
		{"no secret", "events/subscribe", `{` + site + `,"delivery":{"url":"` + hook + `"}}`, "ada"},
		{"a secret without its prefix", "events/subscribe", delivery(hook, strings.TrimPrefix(secret, "whsec_")), "ada"},
		{"a secret that is too short", "events/subscribe", delivery(hook, "whsec_AAAAAAAAAAA="), "ada"},
		{"a secret that is too long", "events/subscribe", delivery(hook, "whsec_"+strings.Repeat("A", 100)), "ada"},
		{"a secret that is no base64", "events/subscribe", delivery(hook, "whsec_!!!!"), "ada"},
		{"ttlMs that is a text", "events/subscribe", `{` + site + to(hook) + `,"ttlMs":"1h"}`, "ada"},
		{"ttlMs below 0", "events/subscribe", `{` + site + to(hook) + `,"ttlMs":-1}`, "ada"},
		{"unsubscribing without a URL", "events/unsubscribe", `{` + site + `}`, "ada"},
		{"unsubscribing with bad arguments", "events/unsubscribe", `{"name":"site.updated","arguments":{"site":7},"delivery":{"url":"` + hook + `"}}`, "ada"},
	})
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	hook := receiver(t, echo)
	refuses(t, "not-found", []ask{
		{"polling an unknown event", "events/poll", `{"name":"no.such"}`, ""},
		{"a name that could be none", "events/poll", `{"name":"No Such\n"}`, ""},
		{"subscribing to an unknown event", "events/subscribe", `{"name":"no.such"` + to(hook) + `}`, "ada"},
		{"unsubscribing from an unknown event", "events/unsubscribe", `{"name":"no.such","delivery":{"url":"` + hook + `"}}`, "ada"},
		{"unsubscribing what was never subscribed", "events/unsubscribe", `{` + site + `,"delivery":{"url":"` + hook + `"}}`, "ada"},
	})
}

func TestForbidden(t *testing.T) {
	t.Parallel()
	hook := receiver(t, echo)
	refuses(t, "forbidden", []ask{
		{"polling what is for tools only", "events/poll", `{"name":"crawl.finished","arguments":{"job":"j"}}`, "ada"},
		{"subscribing to what is for tools only", "events/subscribe", `{"name":"crawl.finished","arguments":{"job":"j"}` + to(hook) + `}`, "ada"},
		{"polling what the app does not allow", "events/poll", `{"name":"site.updated","arguments":{"site":"secret"}}`, "ada"},
		{"subscribing to what the app does not allow", "events/subscribe", `{"name":"site.updated","arguments":{"site":"secret"}` + to(hook) + `}`, "ada"},
		{"subscribing as nobody", "events/subscribe", `{` + site + to(hook) + `}`, ""},
		{"unsubscribing as nobody", "events/unsubscribe", `{` + site + `,"delivery":{"url":"` + hook + `"}}`, ""},
		{"polling what is personal as nobody", "events/poll", `{"name":"your.turn","arguments":{"job":"j"}}`, ""},
		{"a voucher that is none", "events/subscribe",
			`{"name":"site.updated","arguments":{"site":"a","wakeshift_voucher":"wsv_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}` + to(hook) + `}`, ""},
	})
}

func TestResourceExhausted(t *testing.T) {
	t.Parallel()
	first, second := receiver(t, echo), receiver(t, echo)
	refuses(t, "resource-exhausted", []ask{
		{"the one webhook there may be", "events/subscribe", `{` + site + to(first) + `}`, "ada"},
		{"one more", "events/subscribe", `{` + site + to(second) + `}`, "ada"},
	}, func(o *server.Options) { o.Limits.UserWebhooks = 1 })
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	mode := func(mode string) string {
		return `{` + site + `,"delivery":{"mode":` + mode + `,"url":"https://hook.example/","secret":"` + secret + `"}}`
	}
	refuses(t, "unsupported", []ask{
		{"subscribing to a poll", "events/subscribe", mode(`"poll"`), "ada"},
		{"subscribing to a push", "events/subscribe", mode(`"push"`), "ada"},
		{"a mode there is not", "events/subscribe", mode(`"carrier pigeon"`), "ada"},
		{"a mode of a novel", "events/subscribe", mode(`"` + strings.Repeat("x", 100) + `"`), "ada"},
	})
}

// The reason "timeout" is left to package webhook: here it would take as long as the core waits.
func TestCallbackEndpointError(t *testing.T) {
	t.Parallel()
	answering := func(status int, body string) string {
		return receiver(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	redirect := receiver(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) })
	untrusted := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of those who do not trust it
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	gone := httptest.NewServer(http.HandlerFunc(echo))
	gone.Close()
	refuses(t, "callback-endpoint-error", []ask{
		{"another challenge comes back", "events/subscribe", `{` + site + to(answering(200, `{"challenge":"another"}`)) + `}`, "ada"},
		{"no challenge comes back", "events/subscribe", `{` + site + to(answering(200, ``)) + `}`, "ada"},
		{"a 404", "events/subscribe", `{` + site + to(answering(404, `{}`)) + `}`, "ada"},
		{"a 500", "events/subscribe", `{` + site + to(answering(500, `{}`)) + `}`, "ada"},
		{"a redirect", "events/subscribe", `{` + site + to(redirect) + `}`, "ada"},
		{"nobody is there", "events/subscribe", `{` + site + to(gone.URL) + `}`, "ada"},
		{"a certificate of nobody", "events/subscribe", `{` + site + to(untrusted.URL) + `}`, "ada"},
		{"a name there is not", "events/subscribe", `{` + site + to("https://hook.invalid/") + `}`, "ada"},
	})
}

// What lies within the operator's own network is as good as not there.
func TestInnerAddresses(t *testing.T) {
	t.Parallel()
	refuses(t, "inner-addresses", []ask{
		{"loopback", "events/subscribe", `{` + site + to("https://127.0.0.1/") + `}`, "ada"},
		{"loopback, mapped", "events/subscribe", `{` + site + to("https://[::ffff:127.0.0.1]/") + `}`, "ada"},
		{"loopback by name", "events/subscribe", `{` + site + to("https://localhost/") + `}`, "ada"},
		{"loopback without TLS", "events/subscribe", `{` + site + to("http://127.0.0.1/") + `}`, "ada"},
		{"a private network", "events/subscribe", `{` + site + to("https://10.0.0.1/") + `}`, "ada"},
		{"a cloud's metadata", "events/subscribe", `{` + site + to("https://169.254.169.254/latest/") + `}`, "ada"},
	}, func(o *server.Options) { o.PrivateWebhooks = false })
}

// A client that asks a server without events, or for a method there is not.
func TestMethodNotFound(t *testing.T) {
	t.Parallel()
	refuses(t, "method-not-found", []ask{
		{"a method of events there is not", "events/nope", `{` + site + `}`, "ada"},
	})
	plain := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		return mcp.NewServer(&mcp.Implementation{Name: "plain", Version: "1"}, nil)
	}, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	web := httptest.NewServer(plain) // which does not look at the path
	t.Cleanup(web.Close)
	golden(t, "no-events", transcript(t, web.URL, []ask{
		{"a list", "events/list", `{}`, ""}, {"a poll", "events/poll", `{` + site + `}`, ""},
	}))
}

// A core that is away is no fault of the client's, and none of its business.
func TestInternalError(t *testing.T) {
	t.Parallel()
	url := withoutCore(t)
	for name, a := range map[string]ask{ // each takes as long as the SDK tries it again
		"poll":        {"a poll", "events/poll", `{` + site + `}`, "ada"},
		"subscribe":   {"subscribing", "events/subscribe", `{` + site + to("https://hook.example/") + `}`, "ada"},
		"unsubscribe": {"unsubscribing", "events/unsubscribe", `{` + site + `,"delivery":{"url":"https://hook.example/"}}`, "ada"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, "internal-error-"+name, transcript(t, url, []ask{a}))
		})
	}
}

// Streams are refused as polls are.
func TestStreamsAreRefused(t *testing.T) {
	t.Parallel()
	refuses(t, "streams", []ask{
		{"no name", "events/stream", `{"arguments":{}}`, "ada"},
		{"an argument of another type", "events/stream", `{"name":"site.updated","arguments":{"site":7}}`, "ada"},
		{"a cursor that is a number", "events/stream", `{` + site + `,"cursor":7}`, "ada"},
		{"maxAgeMs below 0", "events/stream", `{` + site + `,"maxAgeMs":-1}`, "ada"},
		{"an unknown event", "events/stream", `{"name":"no.such"}`, "ada"},
		{"for tools only", "events/stream", `{"name":"crawl.finished","arguments":{"job":"j"}}`, "ada"},
		{"the app does not allow it", "events/stream", `{"name":"site.updated","arguments":{"site":"secret"}}`, "ada"},
		{"personal, as nobody", "events/stream", `{"name":"your.turn","arguments":{"job":"j"}}`, ""},
		{"a voucher that is none", "events/stream",
			`{"name":"site.updated","arguments":{"site":"a","wakeshift_voucher":"wsv_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}`, ""},
	})
}

// What a user has open counts, whatever it is a stream of.
func TestTooManyStreams(t *testing.T) {
	t.Parallel()
	url := newApp(t, func(o *server.Options) { o.Limits.UserStreams = 1 }).serve(t, transports["JSON"])
	open(t, url, ask{"", "events/stream", `{` + site + `}`, "ada"})
	golden(t, "streams-exhausted", transcript(t, url, []ask{
		{"one stream more than there may be", "events/stream", `{"name":"site.updated","arguments":{"site":"b"}}`, "ada"},
	}))
}

// open opens a stream, which stays open until the test ends.
func open(t *testing.T, url string, a ask) {
	t.Helper()
	headers, body := a.message(t, "some-client")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	first, err := bufio.NewReader(response.Body).ReadString('\n')
	if err != nil || !strings.Contains(first, "notifications/events/active") {
		t.Fatalf("the stream begins with %q, %v", first, err)
	}
}
