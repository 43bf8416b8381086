package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/wakepath/webhook"
)

// verifies checks a delivery's signature as a receiver with that secret would.
func verifies(secretText string, header http.Header, body []byte) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secretText, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", header.Get("webhook-id"), header.Get("webhook-timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for given := range strings.SplitSeq(header.Get("webhook-signature"), " ") {
		if given == want {
			return true
		}
	}
	return false
}

func TestDeliverOnTheWire(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	url := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	})
	to := target(t, url+"/hooks/c1?key=1")
	to.Secrets = append(to.Secrets, secret(t, secretOf(32)))
	before := time.Now().Unix()
	if diff := cmp.Diff(webhook.Result{Status: 204}, local(t).Deliver(t.Context(), to, message)); diff != "" {
		t.Fatal(diff)
	}
	at, err := strconv.ParseInt(got.Header.Get("webhook-timestamp"), 10, 64)
	if err != nil || at < before || at > time.Now().Unix() {
		t.Errorf("the timestamp is %d: %v", at, err)
	}
	for _, text := range []string{secretText, secretOf(32)} {
		if !verifies(text, got.Header, body) {
			t.Errorf("the signature %q does not verify", got.Header.Get("webhook-signature"))
		}
	}
	if verifies(secretOf(24), got.Header, body) {
		t.Error("the signature verifies with another secret")
	}
	for _, name := range []string{"Webhook-Timestamp", "Webhook-Signature"} {
		got.Header.Del(name)
	}
	want := http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(message.Body))}, "User-Agent": {"Rouse-Webhook/1"},
		"Webhook-Id": {"msg_1"}, "X-Mcp-Subscription-Id": {"sub_1"}}
	if diff := cmp.Diff(want, got.Header); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"POST", "/hooks/c1?key=1", string(message.Body)}, []string{got.Method, got.RequestURI, string(body)}); diff != "" {
		t.Error(diff)
	}
}

func TestDeliverJudgesTheAnswer(t *testing.T) {
	t.Parallel()
	const soon = 7 * time.Second
	failed := func(status int, reason webhook.Reason) webhook.Result {
		return webhook.Result{Status: status, Retry: true, Reason: reason}
	}
	waits := func(status int, reason webhook.Reason) webhook.Result {
		return webhook.Result{Status: status, Retry: true, RetryAfter: soon, Reason: reason}
	}
	for status, want := range map[int]webhook.Result{
		200: {Status: 200}, 202: {Status: 202}, 204: {Status: 204}, 299: {Status: 299},
		300: failed(300, webhook.HTTP4xx), 301: failed(301, webhook.HTTP4xx), 304: failed(304, webhook.HTTP4xx), 308: failed(308, webhook.HTTP4xx),
		400: failed(400, webhook.HTTP4xx), 401: failed(401, webhook.HTTP4xx), 404: failed(404, webhook.HTTP4xx), 408: failed(408, webhook.HTTP4xx),
		410: {Status: 410, Reason: webhook.HTTP4xx}, 413: {Status: 413, Reason: webhook.HTTP4xx},
		425: waits(425, webhook.HTTP4xx), 429: waits(429, webhook.HTTP4xx), 503: waits(503, webhook.HTTP5xx),
		500: failed(500, webhook.HTTP5xx), 502: failed(502, webhook.HTTP5xx), 507: failed(507, webhook.HTTP5xx), 999: failed(999, webhook.HTTP5xx),
	} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			url := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(status)
			})
			if diff := cmp.Diff(want, local(t).Deliver(t.Context(), target(t, url), message)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "90": 90 * time.Second, "3600": time.Hour, "3601": webhook.MaxRetryAfter, "2147483647": webhook.MaxRetryAfter,
		"99999999999999999999": 0, "-1": 0, "1.5": 0, "soon": 0,
		"Mon, 30 Nov 2026 12:02:00 GMT": 2 * time.Minute, "Mon, 30 Nov 2026 11:00:00 GMT": 0, "Tue, 30 Nov 2027 12:00:00 GMT": webhook.MaxRetryAfter,
	} {
		if got := webhook.RetryAfter(503, http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestDeliverFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	var followed atomic.Int32
	elsewhere := receiver(t, func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		url := receiver(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, status) })
		want := webhook.Result{Status: status, Retry: true, Reason: webhook.HTTP4xx}
		if diff := cmp.Diff(want, local(t).Deliver(t.Context(), target(t, url), message)); diff != "" {
			t.Error(diff)
		}
	}
	if followed.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

// hang keeps requests waiting until the client gives up or the test ends.
func hang(t testing.TB) http.HandlerFunc {
	t.Helper()
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	return func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}
}

func TestDeliverTimesOut(t *testing.T) {
	t.Parallel()
	sender := newSender(t, webhook.Options{AllowPrivate: true, AllowHTTP: true, Timeout: 30 * time.Millisecond})
	silent := rawReceiver(t, func(connection net.Conn) {
		_, _ = io.Copy(io.Discard, connection)
		_ = connection.Close()
	})
	for name, url := range map[string]string{
		"no answer":        receiver(t, hang(t)),
		"no TLS handshake": "https://" + silent,
	} {
		want := webhook.Result{Retry: true, Reason: webhook.TimedOut}
		if diff := cmp.Diff(want, sender.Deliver(t.Context(), target(t, url), message)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestDeliverEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	wait := hang(t)
	url := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		wait(w, r)
	})
	want := webhook.Result{Retry: true, Reason: webhook.TimedOut}
	if diff := cmp.Diff(want, local(t).Deliver(ctx, target(t, url), message)); diff != "" {
		t.Error(diff)
	}
}

// TestDeliverTakesAnEndlessAnswer counts the status, whatever follows it.
func TestDeliverTakesAnEndlessAnswer(t *testing.T) {
	t.Parallel()
	url := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 64<<10); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	if diff := cmp.Diff(webhook.Result{Status: 200}, local(t).Deliver(t.Context(), target(t, url), message)); diff != "" {
		t.Error(diff)
	}
}

func TestDeliverToWhoDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"hangs up":     "",
		"not HTTP":     "SSH-2.0-OpenSSH_9.9\r\n",
		"long headers": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
	} {
		address := rawReceiver(t, func(connection net.Conn) {
			_, _ = connection.Read(make([]byte, 4<<10))
			_, _ = io.WriteString(connection, answer)
			_ = connection.Close()
		})
		want := webhook.Result{Retry: true, Reason: webhook.ConnectionRefused}
		if diff := cmp.Diff(want, local(t).Deliver(t.Context(), target(t, "http://"+address), message)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	want := webhook.Result{Retry: true, Reason: webhook.ConnectionRefused}
	if diff := cmp.Diff(want, local(t).Deliver(t.Context(), target(t, "http://"+listener.Addr().String()), message)); diff != "" {
		t.Errorf("nobody listens: %s", diff)
	}
}

func TestDeliverRefusesABadURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "http://hooks.example.com", "https://2130706433/", "ftp://127.0.0.1/"} {
		if diff := cmp.Diff(webhook.Result{Reason: webhook.ConnectionRefused}, local(t).Deliver(t.Context(), target(t, url), message)); diff != "" {
			t.Errorf("%s: %s", url, diff)
		}
	}
}

// echo answers a challenge as a receiver should.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if !verifies(secretText, r.Header, body) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, _ = w.Write([]byte(strings.Replace(string(body), `"type":"verification",`, "", 1)))
}

func TestVerify(t *testing.T) {
	t.Parallel()
	var bodies, ids []string
	url := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies, ids = append(bodies, string(body)), append(ids, r.Header.Get("webhook-id"))
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		echo(w, r)
	})
	sender := local(t)
	for range 2 {
		if err := sender.Verify(t.Context(), target(t, url)); err != nil {
			t.Fatal(err)
		}
	}
	if bodies[0] == bodies[1] || ids[0] == ids[1] {
		t.Errorf("the challenge or its id came twice: %q", bodies)
	}
	if !strings.HasPrefix(bodies[0], `{"type":"verification","challenge":"`) || !strings.HasPrefix(ids[0], "msg_verification_") {
		t.Errorf("sent %s as %s", bodies[0], ids[0])
	}
	if len(bodies[0]) < len(`{"type":"verification","challenge":""}`)+22 {
		t.Errorf("the challenge %s is easy to guess", bodies[0])
	}
}

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	answer := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			echo(w, r)
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    webhook.Reason
	}{
		"another challenge":  {answer(`{"challenge":"x"}`), webhook.ChallengeFailed},
		"an empty challenge": {answer(`{"challenge":""}`), webhook.ChallengeFailed},
		"no challenge":       {answer(`{}`), webhook.ChallengeFailed},
		"a number":           {answer(`{"challenge":7}`), webhook.ChallengeFailed},
		"not JSON":           {answer(`ok`), webhook.ChallengeFailed},
		"nothing":            {answer(``), webhook.ChallengeFailed},
		"400 and the echo":   {status(400), webhook.ChallengeFailed},
		"500 and the echo":   {status(500), webhook.ChallengeFailed},
		"too long": {func(w http.ResponseWriter, r *http.Request) {
			echo(w, r)
			_, _ = io.WriteString(w, strings.Repeat(" ", 64<<10))
		}, webhook.ChallengeFailed},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, webhook.ChallengeFailed},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"challenge":`)
		}, webhook.ConnectionRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fails(t, local(t).Verify(t.Context(), target(t, receiver(t, c.handler))), c.want)
		})
	}
}

func TestVerifyWithAnotherSecret(t *testing.T) {
	t.Parallel()
	to := target(t, receiver(t, echo))
	to.Secrets = []webhook.Secret{secret(t, secretOf(32))}
	fails(t, local(t).Verify(t.Context(), to), webhook.ChallengeFailed)
}

func TestVerifyTimesOut(t *testing.T) {
	t.Parallel()
	sender := newSender(t, webhook.Options{AllowPrivate: true, AllowHTTP: true, Timeout: 30 * time.Millisecond})
	wait := hang(t)
	for name, handler := range map[string]http.HandlerFunc{
		"no answer": wait,
		"half an answer": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"challenge":"`)
			_ = http.NewResponseController(w).Flush()
			wait(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fails(t, sender.Verify(t.Context(), target(t, receiver(t, handler))), webhook.TimedOut)
		})
	}
}

func TestVerifyRefusesABadURL(t *testing.T) {
	t.Parallel()
	fails(t, local(t).Verify(t.Context(), target(t, "http://hooks.example.com")), webhook.ConnectionRefused)
}

func fails(t *testing.T, err error, want webhook.Reason) {
	t.Helper()
	var failed *webhook.VerifyError
	if !errors.As(err, &failed) || failed.Reason != want {
		t.Fatalf("got %v, want %s", err, want)
	}
	if diff := cmp.Diff("the webhook's endpoint could not be verified: "+string(want), err.Error()); diff != "" {
		t.Error(diff)
	}
}
