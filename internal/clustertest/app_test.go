package clustertest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/credential"
)

const manifest = `{"events":[{"name":"job.step","description":"A job got on","topic":"ev/job.step/{job}",
	"arguments":{"type":"object","properties":{"job":{"type":"string"}},"required":["job"]},
	"payload":{"type":"object","properties":{"job":{"type":"string"},"n":{"type":"integer"}},"required":["job","n"]}}]}`

// An app calls the core through the balancer, and calls again what fails. It may be used by several goroutines.
type app struct {
	base   string
	key    ed25519.PrivateKey
	id     string // of the key
	client *http.Client
}

func newApp(t *testing.T, base, key string, client *http.Client) *app {
	t.Helper()
	parsed, err := credential.ParseAppKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &app{base: base, key: parsed.PrivateKey(), id: credential.KeyID(parsed.PublicKey()), client: client}
}

func (a *app) assertion() string {
	now := time.Now().Unix()
	signing := part(`{"alg":"EdDSA","typ":"app+jwt","kid":"%s"}`, a.id) + "." +
		part(`{"iss":"%[1]s","sub":"%[1]s","aud":"%[2]s/api/apps","iat":%[3]d,"exp":%[4]d,"jti":"%[5]s"}`, a.id, a.base, now, now+60, rand.Text())
	return signing + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(a.key, []byte(signing)))
}

func part(form string, values ...any) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, form, values...))
}

// once makes one attempt at a call. Without an answer the status is 0.
func (a *app) once(ctx context.Context, method, path, body string) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+a.assertion())
	request.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, err
	}
	return response.StatusCode, answer, nil
}

// call makes a call that must succeed.
func (a *app) call(t *testing.T, method, path, body string, into any) {
	t.Helper()
	status, answer, err := a.once(t.Context(), method, "/api/apps/v1"+path, body)
	if err != nil || status != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", path, status, answer, err)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

var (
	// errKept means that a failure was answered where nothing had failed.
	errKept = errors.New("a 5xx was a success")
	// errRefused means that what was sent was found wrong.
	errRefused = errors.New("refused")
)

// emit emits a job's number, again and again until it is acknowledged.
func (a *app) emit(ctx context.Context, job string, n int) error {
	body := fmt.Sprintf(`{"name":"job.step","arguments":{"job":%[1]q},"payload":{"job":%[1]q,"n":%[2]d},"text":"%[1]s %[2]d","id":"%[1]s-%[2]d"}`, job, n)
	failed, unanswered := 0, 0
	for {
		status, answer, err := a.once(ctx, http.MethodPost, "/api/apps/v1/events/emit", body)
		switch {
		case err != nil:
			unanswered++ // it may have been kept
		case status == http.StatusOK:
			var done struct{ Duplicate bool }
			if err := json.Unmarshal(answer, &done); err != nil {
				return err
			}
			if done.Duplicate && failed > 0 && unanswered == 0 {
				return fmt.Errorf("%w: %s %d", errKept, job, n)
			}
			return nil
		case status < http.StatusInternalServerError:
			return fmt.Errorf("%w: %d %s", errRefused, status, answer)
		default:
			failed++
		}
		if !again(ctx) {
			return ctx.Err()
		}
	}
}

// subscribed is what a subscribing call brings.
type subscribed struct {
	Addition struct {
		Text string
		Meta map[string]string
	}
}

var streamAddress = regexp.MustCompile(`u='([^']+)'`)

// monitor subscribes a new conversation of Claude Code to a job and returns its stream's address.
func (a *app) monitor(t *testing.T, job string) string {
	t.Helper()
	var done subscribed
	a.call(t, http.MethodPost, "/event-subscriptions", fmt.Sprintf(`{"call":{"client":"claude-code"},"name":"job.step","arguments":{"job":%q}}`, job), &done)
	found := streamAddress.FindStringSubmatch(done.Addition.Text)
	if found == nil {
		t.Fatalf("no stream in %q", done.Addition.Text)
	}
	return found[1]
}

// connector subscribes a thread of Codex to jobs and returns its socket's address.
func (a *app) connector(t *testing.T, thread string, jobs []string) string {
	t.Helper()
	var done subscribed
	for _, job := range jobs {
		a.call(t, http.MethodPost, "/event-subscriptions", fmt.Sprintf(`{"call":{"client":"codex-mcp-client","tool":"watch",
			"meta":{"x-codex-turn-metadata":{"thread_id":%q}}},"name":"job.step","arguments":{"job":%q}}`, thread, job), &done)
	}
	beacon := done.Addition.Meta["wakeshift/connector"]
	ask, err := json.Marshal(map[string]string{"ticket": claim(t, beacon, "ticket"), "thread": thread})
	if err != nil {
		t.Fatal(err)
	}
	response, err := a.client.Post(claim(t, beacon, "redeem"), "application/json", bytes.NewReader(ask))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var redeemed struct{ URL string }
	if err := json.NewDecoder(response.Body).Decode(&redeemed); err != nil || redeemed.URL == "" {
		t.Fatalf("redeeming: %s, %v", response.Status, err)
	}
	return redeemed.URL
}

// webhook subscribes an endpoint to a job.
func (a *app) webhook(t *testing.T, job, url, secret string) {
	t.Helper()
	var done struct {
		Result *struct{ ID string }
		Error  json.RawMessage
	}
	a.call(t, http.MethodPost, "/events/subscribe", fmt.Sprintf(`{"call":{"client":"some-client","user":"ada"},"params":{"name":"job.step",
		"arguments":{"job":%q},"delivery":{"mode":"webhook","url":%q,"secret":%q}}}`, job, url, secret), &done)
	if done.Result == nil {
		t.Fatalf("subscribing a webhook: %s", done.Error)
	}
}
