//go:build unix

package sdktest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
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
	return delivered{Name: "release.deployed", Data: map[string]any{"version": version}, Meta: map[string]any{"ai.wakeshift/text": version + " is on " + place}}
}

func (a *agent) deploy(version, place string) {
	a.t.Helper()
	a.facts("emit", about("release.deployed", map[string]any{"place": place}, map[string]any{"payload": map[string]any{"version": version}}))
}

// ChatGPT calls a tool, finds a voucher in its result, and subscribes with it. The published SDK asks for a user besides.
func chatGPTSubscribesWithItsVoucher(t *testing.T, endpoint string) {
	h := newHook(t)
	ada := client{name: "openai-mcp", user: "ada"}.overHTTP(t, endpoint)
	voucher := find(t, voucherForm, ada.done("watch", about("release.deployed", map[string]any{"place": "north"})))
	ada.deploy("v1", "north") // before the webhook is there
	with := func(place string) *nativeParams {
		return &nativeParams{Name: "release.deployed", Arguments: map[string]any{"place": place, "wakeshift_voucher": voucher}, Delivery: h.delivery}
	}
	granted, err := ada.native("events/subscribe", with("north"))
	if err != nil {
		t.Fatal(err)
	}
	if until, err := time.Parse(time.RFC3339, granted.RefreshBefore); err != nil || !until.After(time.Now()) || granted.ID == "" {
		t.Errorf("granted %+v, %v", granted, err)
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
	_, err = client{name: "openai-mcp", user: "bob"}.overHTTP(t, endpoint).native("events/subscribe", with("north"))
	refusal(err)
	for range 2 { // the second finds nothing, which is no error in this dialect
		if _, err := ada.native("events/unsubscribe", with("north")); err != nil {
			t.Errorf("unsubscribing: %v", err)
		}
	}
	nobody := client{name: "openai-mcp"}.overHTTP(t, endpoint)
	if _, err := nobody.native("events/subscribe", with("north")); rpcError(t, err).Code != -32012 {
		t.Errorf("nobody: %v", err)
	}
}

// A signed-in user needs no voucher. The answers are in the dialect of the client.
func aUserSubscribesNatively(t *testing.T, endpoint string) {
	for _, c := range []struct {
		client                 client
		ownID                  bool // a delivery's id is the subscription's and not the event's
		unknown, notEcho, gone int64
	}{
		{client{name: "openai-mcp", user: "ada"}, false, -32011, -32015, 0},
		{client{name: "native-test", user: "ada", events: true}, true, -32023, -32027, -32023},
	} {
		t.Run(c.client.name, func(t *testing.T) {
			a, h, place := c.client.overHTTP(t, endpoint), newHook(t), c.client.name
			ask := &nativeParams{Name: "release.deployed", Arguments: map[string]any{"place": place}, Delivery: h.delivery}
			if _, err := a.native("events/subscribe", ask); err != nil {
				t.Fatal(err)
			}
			a.deploy("v1", place)
			if got := h.expect(deployed("v1", place)); c.ownID == (got.webhookID == got.EventID) {
				t.Errorf("webhook-id %s of event %s", got.webhookID, got.EventID)
			}
			listed := a.done("list_subscriptions", nil)
			if host := strings.TrimPrefix(strings.TrimSuffix(h.delivery.URL, "/hook"), "http://"); !strings.Contains(listed, "delivered to "+host) {
				t.Errorf("listed: %s", listed)
			}
			if again, err := a.native("events/subscribe", ask); err != nil || !strings.Contains(string(again.DeliveryStatus), `"active":true`) {
				t.Errorf("refreshed: %+v, %v", again, err)
			}
			if _, err := a.native("events/subscribe", &nativeParams{Name: "nothing.such", Delivery: h.delivery}); rpcError(t, err).Code != c.unknown {
				t.Errorf("an unknown event: %v", err)
			}
			deaf := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			defer deaf.Close()
			elsewhere := *ask
			elsewhere.Delivery = &delivery{Mode: "webhook", URL: deaf.URL, Secret: h.delivery.Secret}
			_, err := a.native("events/subscribe", &elsewhere)
			if wire := rpcError(t, err); wire.Code != c.notEcho || string(wire.Data) != `{"reason":"challenge_failed"}` {
				t.Errorf("an endpoint that does not echo: %v, %s", err, wire.Data)
			}
			if _, err := a.native("events/unsubscribe", ask); err != nil {
				t.Errorf("unsubscribing: %v", err)
			}
			_, err = a.native("events/unsubscribe", ask)
			if c.gone == 0 && err != nil || c.gone != 0 && rpcError(t, err).Code != c.gone {
				t.Errorf("unsubscribing again: %v", err)
			}
		})
	}
}
