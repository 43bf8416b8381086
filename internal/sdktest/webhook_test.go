//go:build unix

package sdktest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// secretKey is what webhooks are signed with here.
var secretKey = []byte("thirty-two bytes of a secret key")

// A hook is an endpoint on this machine that passes its verification and keeps what it is sent.
type hook struct {
	t        *testing.T
	delivery *delivery
	sent     chan delivered
}

// delivered is one delivery of an event.
type delivered struct {
	webhookID string
	EventID   string         `json:"eventId"`
	Name      string         `json:"name"`
	Data      map[string]any `json:"data"`
	Meta      map[string]any `json:"_meta"`
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{t: t, sent: make(chan delivered, 16)}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.delivery = &delivery{Mode: "webhook", URL: server.URL + "/hook", Secret: "whsec_" + base64.StdEncoding.EncodeToString(secretKey)}
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		h.t.Error(err)
		return
	}
	id := r.Header.Get("webhook-id")
	mac := hmac.New(sha256.New, secretKey)
	mac.Write([]byte(id + "." + r.Header.Get("webhook-timestamp") + "." + string(body)))
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.Header.Get("webhook-signature") != want {
		h.t.Errorf("signed %q, want %q", r.Header.Get("webhook-signature"), want)
	}
	var challenge struct{ Type, Challenge string }
	if err := json.Unmarshal(body, &challenge); err == nil && challenge.Type == "verification" {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"challenge": challenge.Challenge}) // the core notices what it does not get
		return
	}
	got := delivered{webhookID: id}
	if err := json.Unmarshal(body, &got); err != nil {
		h.t.Errorf("%q: %v", body, err)
	}
	h.sent <- got
}

// request is the arguments of a tool that asks for the hook's deliveries, in the name of a caller.
func (h *hook) request(who, arguments map[string]any) map[string]any {
	return given("method", "POST", "path", "/events/subscribe", "body",
		given("call", who, "name", "release.deployed", "arguments", arguments, "delivery", h.delivery, "dialect", "draft"))
}

// ask is a request for the hook's deliveries of what is deployed at a place.
func (h *hook) ask(place string) *nativeParams {
	return &nativeParams{Name: "release.deployed", Arguments: given("place", place), Delivery: h.delivery}
}

// expect is the next delivery, without its ids.
func (h *hook) expect(want delivered) (got delivered) {
	h.t.Helper()
	select {
	case got = <-h.sent:
	case <-time.After(patience):
		h.t.Fatal("nothing was delivered")
	}
	want.webhookID, want.EventID = got.webhookID, got.EventID
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(delivered{})); diff != "" {
		h.t.Errorf("delivered (-want +got):\n%s", diff)
	}
	return got
}

// rpcError is the JSON-RPC error that an answer must be.
func rpcError(t *testing.T, err error) *jsonrpc.Error {
	t.Helper()
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		t.Fatalf("got %v, want a JSON-RPC error", err)
	}
	return wire
}

func deployed(version, place string) delivered {
	return delivered{Name: "release.deployed", Data: given("version", version), Meta: given("ai.wakeshift/text", version+" is on "+place)}
}

func (a *agent) deploy(version, place string) {
	a.t.Helper()
	a.facts("emit", about("release.deployed", given("place", place), "payload", given("version", version)))
}

// ChatGPT calls a tool, finds a voucher in its result, and subscribes with it. The published SDK asks for a user besides.
func chatGPTSubscribesWithItsVoucher(t *testing.T, a *app) {
	h := newHook(t)
	ada := a.agent(t, client{name: "openai-mcp", user: "ada"})
	voucher := find(t, voucherForm, ada.done("watch", about("release.deployed", given("place", "north"))))
	ada.deploy("v1", "north") // before the webhook is there
	with := func(place string) *nativeParams {
		ask := h.ask(place)
		ask.Arguments["wakeshift_voucher"] = voucher
		return ask
	}
	granted, err := ada.native("events/subscribe", with("north"))
	if err != nil {
		t.Fatal(err)
	}
	if !granted.RefreshBefore.After(time.Now()) || granted.ID == "" {
		t.Errorf("granted %+v", granted)
	}
	first := h.expect(deployed("v1", "north"))
	ada.deploy("v2", "north")
	if second := h.expect(deployed("v2", "north")); second.webhookID != second.EventID || first.EventID == second.EventID {
		t.Errorf("ids %+v and %+v: want the event's as the webhook's", first, second)
	}
	// The core's refusal is told in its words, under a code of the SDK's choice.
	refusal := func(err error) {
		t.Helper()
		if wire := rpcError(t, err); !strings.Contains(wire.Message, "the voucher is not good for this event with these arguments") {
			t.Errorf("refused with %v", err)
		}
	}
	_, err = ada.native("events/subscribe", with("south"))
	refusal(err)
	bobs := h.request(given("client", "openai-mcp", "user", "bob"), with("north").Arguments)
	ada.refuses(refused("forbidden", 403), "request", bobs)
	for range 2 { // the second finds nothing, which is no error in this dialect
		if _, err := ada.native("events/unsubscribe", with("north")); err != nil {
			t.Errorf("unsubscribing: %v", err)
		}
	}
}

// A signed-in user needs no voucher. The answers are in the dialect of the client.
func aUserSubscribesNatively(t *testing.T, a *app) {
	for _, c := range []struct {
		client client
		gone   int64
	}{
		{client{name: "openai-mcp", user: "ada"}, 0},
		{client{name: "native-test", user: "ada", events: true}, -32023},
	} {
		t.Run(c.client.name, func(t *testing.T) {
			t.Parallel()
			agent, h, place := a.agent(t, c.client), newHook(t), c.client.name
			ask := h.ask(place)
			ask.TTLMs, ask.MaxAgeMs, ask.Cursor = 90_000, 60_000, "of another core"
			granted, err := agent.native("events/subscribe", ask)
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(granted.RefreshBefore); left <= 0 || left > 90*time.Second || !granted.Truncated {
				t.Errorf("granted %+v", granted)
			}
			agent.deploy("v1", place)
			if got := h.expect(deployed("v1", place)); got.webhookID != got.EventID {
				t.Errorf("webhook-id %s of event %s", got.webhookID, got.EventID)
			}
			listed := agent.done("list_subscriptions", nil)
			if host := strings.TrimPrefix(strings.TrimSuffix(h.delivery.URL, "/hook"), "http://"); !strings.Contains(listed, "delivered to "+host) {
				t.Errorf("listed: %s", listed)
			}
			if again, err := agent.native("events/subscribe", ask); err != nil || !strings.Contains(string(again.DeliveryStatus), `"active":true`) {
				t.Errorf("refreshed: %+v, %v", again, err)
			}
			aWebhookIsOneSubscription(t, agent, granted.ID, place)
			if _, err := agent.native("events/subscribe", ask); err != nil {
				t.Fatal(err)
			}
			if _, err := agent.native("events/unsubscribe", ask); err != nil {
				t.Errorf("unsubscribing: %v", err)
			}
			_, err = agent.native("events/unsubscribe", ask)
			if c.gone == 0 && err != nil || c.gone != 0 && rpcError(t, err).Code != c.gone {
				t.Errorf("unsubscribing again: %v", err)
			}
		})
	}
}

// aWebhookIsOneSubscription looks at a webhook by its id, and ends it.
func aWebhookIsOneSubscription(t *testing.T, agent *agent, id, place string) {
	t.Helper()
	agent.says(given("id", id, "topic", "ev/release.deployed/"+place, "status", "active", "connected", true, "via", "webhook"), "subscription_status", given("id", id))
	agent.refuses(refused("unsupported", 400), "send", given("id", id, "text", "no event of the app"))
	agent.says(given("ended", true), "end_subscription", given("id", id))
	agent.refuses(refused("unknown_subscription", 404), "subscription_status", given("id", id))
}

// Native refusals come as errors of JSON-RPC, in the dialect of the client.
func nativeRefusals(t *testing.T, a *app) {
	h := newHook(t)
	endpoint := func(status int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(server.Close)
		return server.URL
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS() // with a certificate that nobody trusts
	t.Cleanup(secure.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	at := func(url string) *nativeParams {
		return &nativeParams{Name: "release.deployed", Arguments: given("place", "x"), Delivery: &delivery{"webhook", url, h.delivery.Secret}}
	}
	unknown, polled, noID, noSecret := h.ask("x"), h.ask("x"), h.ask("Not An Id"), at(h.delivery.URL)
	unknown.Name = "nothing.such"
	polled.Delivery = &delivery{Mode: "poll"}
	noSecret.Delivery.Secret = ""
	door := &nativeParams{Name: "door.opened", Arguments: given("owner", "bob"), Delivery: h.delivery}
	for _, c := range []struct {
		name, method   string
		params         *nativeParams
		draft, chatGPT int64
		data           string
	}{
		{"an unknown event", "events/subscribe", unknown, -32023, -32011, `{"kind":"event"}`},
		{"what the app does not allow", "events/subscribe", door, -32024, -32012, ""},
		{"an argument that does not route", "events/subscribe", noID, -32602, -32602, ""},
		{"no secret", "events/subscribe", noSecret, -32602, -32602, ""},
		{"another delivery", "events/subscribe", polled, -32026, -32602, `{"feature":"deliveryMode","value":"poll"}`},
		{"polling", "events/poll", h.ask("x"), -32026, -32602, `{"feature":"deliveryMode","value":"poll"}`},
		{"streaming", "events/stream", h.ask("x"), -32026, -32602, `{"feature":"deliveryMode","value":"stream"}`},
		{"an endpoint that does not echo", "events/subscribe", at(endpoint(http.StatusOK)), -32027, -32015, `{"reason":"challenge_failed"}`},
		{"an endpoint that fails", "events/subscribe", at(endpoint(http.StatusInternalServerError)), -32027, -32015, `{"reason":"challenge_failed"}`},
		{"an endpoint that is not there", "events/subscribe", at(closed.URL), -32027, -32015, `{"reason":"connection_refused"}`},
		{"an endpoint that is another", "events/subscribe", at(secure.URL), -32027, -32015, `{"reason":"tls_error"}`},
	} {
		for who, code := range map[client]int64{{name: "native-test", user: "ada", events: true}: c.draft, {name: "openai-mcp", user: "ada"}: c.chatGPT} {
			params := *c.params // the SDK for Go writes who asks into it
			_, err := a.agent(t, who).native(c.method, &params)
			if wire := rpcError(t, err); wire.Code != code || string(wire.Data) != c.data {
				t.Errorf("%s, %s: %d, %v, %s; want %d, %s", c.name, who.name, wire.Code, err, wire.Data, code, c.data)
			}
		}
	}
	nobody := a.agent(t, client{name: "claude-code"})
	if _, err := nobody.native("events/subscribe", h.ask("x")); rpcError(t, err).Code != -32024 {
		t.Errorf("nobody: %v", err)
	}
	// The error that the SDK makes these of has the reason as well.
	h.delivery = at(closed.URL).Delivery
	want := refused("callback_failed", 400)
	want["reason"] = "connection_refused"
	nobody.refuses(want, "request", h.request(given("client", "native-test", "user", "ada"), given("place", "x")))
}
