package clustertest

import (
	"bufio"
	"context"
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

	"github.com/coder/websocket"
)

// pause is how long an agent's program waits before it comes back.
const pause = 50 * time.Millisecond

// again reports, after a pause, whether to try again.
func again(ctx context.Context) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// A line is one message of a Monitor, or of what a digest stands for.
type line struct {
	Type  string
	ID    string
	Whole string
	Data  struct {
		Job string
		N   int
	}
}

// runMonitor does what the Monitor's command does: it reads the stream until that ends well, which it must not here, and comes
// back when it is cut.
func runMonitor(ctx context.Context, client *http.Client, address string, l *ledger) {
	for again(ctx) {
		err := readStream(ctx, client, address, l)
		if err == nil {
			l.problem("the stream ended, as if nothing were subscribed")
			return
		}
	}
}

// errStatus is an answer that curl -f takes for a failure.
var errStatus = errors.New("the status is an error")

// readStream reads a stream until it ends well (nil) or is cut.
func readStream(ctx context.Context, client *http.Client, address string, l *ledger) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		return errStatus
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var one line
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return err // cut within the line
		}
		if one.Type != "digest" {
			l.take(one.Data.Job, one.Data.N, one.ID)
		} else if err := readStream(ctx, client, one.Whole, l); err != nil {
			return err
		}
	}
	return lines.Err()
}

// runConnector does what a connector does: it acknowledges each frame, and comes back when its socket is cut.
func runConnector(ctx context.Context, client *http.Client, address string, l *ledger) {
	for again(ctx) {
		conn, _, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPClient: client})
		if err != nil {
			continue
		}
		err = acknowledge(ctx, conn, l)
		_ = conn.CloseNow()
		if status := websocket.CloseStatus(err); status == websocket.StatusNormalClosure || status == 4001 {
			l.problem("the socket was closed with %d", status)
			return
		}
	}
}

func acknowledge(ctx context.Context, conn *websocket.Conn, l *ledger) error {
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		var frame struct {
			Delivery string `json:"delivery_id"`
			Event    line
		}
		if err := json.Unmarshal(text, &frame); err != nil {
			l.problem("a frame: %v", err)
			return err
		}
		l.take(frame.Event.Data.Job, frame.Event.Data.N, frame.Delivery)
		ack, err := json.Marshal(map[string]string{"type": "ack", "delivery_id": frame.Delivery})
		if err != nil {
			return err
		}
		if err := conn.Write(ctx, websocket.MessageText, ack); err != nil {
			return err
		}
	}
}

// hookSecret is what webhooks are signed with here.
var hookSecret = []byte("thirty-two bytes of a secret key")

// newHook is an endpoint that passes its verification, checks what it is sent, and now and then refuses a first attempt.
func newHook(t *testing.T, l *ledger) (url, secret string) {
	t.Helper()
	attempts := make(chan int, 1)
	attempts <- 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // its node was killed
		}
		id := r.Header.Get("webhook-id")
		mac := hmac.New(sha256.New, hookSecret)
		_, _ = io.WriteString(mac, id+"."+r.Header.Get("webhook-timestamp")+"."+string(body))
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.Header.Get("webhook-signature") != want {
			l.problem("signed %q, want %q", r.Header.Get("webhook-signature"), want)
		}
		var sent struct {
			line
			Challenge string
		}
		if err := json.Unmarshal(body, &sent); err != nil {
			l.problem("sent %q", body)
			return
		}
		if sent.Type == "verification" {
			_ = json.NewEncoder(w).Encode(map[string]string{"challenge": sent.Challenge}) // the core notices what it does not get
			return
		}
		n := <-attempts
		attempts <- n + 1
		if n%10 == 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		l.take(sent.Data.Job, sent.Data.N, id)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/hook", "whsec_" + base64.StdEncoding.EncodeToString(hookSecret)
}

// claim reads a claim of a token without checking it, as a program does that trusts whoever handed it the token.
func claim(t *testing.T, token, name string) string {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("no token: %q", token)
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(body, &claims); err != nil {
		t.Fatal(err)
	}
	text, _ := claims[name].(string)
	return text
}
