//go:build unix

package sdktest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func codexIsWokenByItsConnector(t *testing.T, a *app) {
	codex := a.agent(t, client{name: "codex-mcp-client"})
	asked := given("repo", "codex")
	watching := codex.callWith("watch", about("build.finished", asked), mcp.Meta{"x-codex-turn-metadata": map[string]any{"thread_id": "one thread"}})
	if facts := structured(t, watching); facts["harness"] != "codex" {
		t.Fatalf("recognised as %v", facts)
	}
	socket := connector(t, watching, "one thread")
	codex.build("codex", "main", 3)
	want := happened{"codex: 3 failures on main", map[string]any{"branch": "main", "failures": 3.0}}
	if diff := cmp.Diff(want, event(t, socket)); diff != "" {
		t.Errorf("frame (-want +got):\n%s", diff)
	}
}

// connector redeems the beacon of a result for its thread, and connects.
func connector(t *testing.T, result *mcp.CallToolResult, thread string) *websocket.Conn {
	t.Helper()
	beacon, _ := result.Meta["wakeshift/connector"].(string)
	parts := strings.Split(beacon, ".")
	if len(parts) != 3 {
		t.Fatalf("the result has no beacon: %s", text(result))
	}
	var claims struct{ Redeem, Ticket, Tool string }
	if raw, err := base64.RawURLEncoding.DecodeString(parts[1]); err != nil || json.Unmarshal(raw, &claims) != nil {
		t.Fatalf("the beacon's claims cannot be read: %v", err)
	}
	if claims.Tool != "watch" {
		t.Errorf("the beacon names the tool %q", claims.Tool)
	}
	body, err := json.Marshal(map[string]string{"ticket": claims.Ticket, "thread": thread})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, claims.Redeem, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var redeemed struct{ URL string }
	if err := json.NewDecoder(response.Body).Decode(&redeemed); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("redeeming: %s, %v", response.Status, err)
	}
	transport := new(http.Transport)
	socket, _, err := websocket.Dial(t.Context(), redeemed.URL, &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = socket.Close(websocket.StatusNormalClosure, "") // the core need not answer
		transport.CloseIdleConnections()
	})
	return socket
}

// happened is an event as a connector's frame has it.
type happened struct {
	Subject string         `json:"subject"`
	Data    map[string]any `json:"data"`
}

// event is the next event of a connector, which is acknowledged.
func event(t *testing.T, socket *websocket.Conn) happened {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		var frame struct {
			Type       string   `json:"type"`
			DeliveryID string   `json:"delivery_id"`
			Event      happened `json:"event"`
		}
		if err := wsjson.Read(ctx, socket, &frame); err != nil {
			t.Fatal(err)
		}
		if frame.Type != "event" {
			continue
		}
		if err := wsjson.Write(ctx, socket, map[string]string{"type": "ack", "delivery_id": frame.DeliveryID}); err != nil {
			t.Fatal(err)
		}
		return frame.Event
	}
}
