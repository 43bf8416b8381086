package bench

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"runtime/debug"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/rousetest"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(200) // as rouse serve does
	goleak.VerifyTestMain(m)
}

// connections is how many an app keeps open.
const connections = 64

// padding makes an emit's payload about half a kilobyte.
const padding = 480

// A target is a server that takes emits.
type target struct {
	base   string
	path   string // of emits
	app    app
	idle   chan *connection
	stream func(job string) (address string, err error) // makes the address of a new stream of that job
}

func newTarget(b *testing.B, base, path string, key app) *target {
	b.Helper()
	t := &target{base: base, path: path, app: key, idle: make(chan *connection, connections)}
	for range connections {
		c, err := dial(base)
		if err != nil {
			b.Fatal(err)
		}
		t.idle <- c
		b.Cleanup(func() { _ = c.Close() })
	}
	return t
}

// manifest has one event, job.done of a job.
const manifest = `{"events":[{"name":"job.done","description":"A job is done","topic":"ev/job.done/{job}",
	"arguments":{"type":"object","properties":{"job":{"type":"string"}},"required":["job"]},
	"payload":{"type":"object","properties":{"n":{"type":"integer"},"note":{"type":"string"}},"required":["n"]}}]}`

// newCore starts a core whose app has the manifest.
func newCore(b *testing.B) *target {
	b.Helper()
	core := rousetest.NewCore(b)
	key, err := credential.ParseAppKey(core.Key)
	if err != nil {
		b.Fatal(err)
	}
	t := newTarget(b, core.URL, "/api/apps/v1/events/emit", app{key.PrivateKey(), credential.KeyID(key.PublicKey()), core.URL + "/api/apps"})
	if _, err := t.call(http.MethodPut, "/api/apps/v1/manifest", []byte(manifest)); err != nil {
		b.Fatal(err)
	}
	t.stream = t.subscribe
	return t
}

// emit emits an event of a job with a number and some bytes more.
func (t *target) emit(job string, n int, padding []byte) error {
	return t.emitWith(t.app.assertion(), job, n, padding)
}

// emitWith is emit with an assertion that was made before, which lasts for two minutes.
func (t *target) emitWith(assertion, job string, n int, padding []byte) error {
	body := fmt.Appendf(nil, `{"name":"job.done","arguments":{"job":"%s"},"payload":{"n":%d,"note":"%s"},"text":"Job %s is done"}`, job, n, padding, job)
	_, err := t.callWith(assertion, http.MethodPost, t.path, body)
	return err
}

// call makes a request with an assertion of its own, on a connection that nobody uses.
func (t *target) call(method, path string, body []byte) ([]byte, error) {
	return t.callWith(t.app.assertion(), method, path, body)
}

func (t *target) callWith(assertion, method, path string, body []byte) ([]byte, error) {
	c := <-t.idle
	defer func() { t.idle <- c }()
	return c.call(method, path, assertion, body)
}

// An app signs requests.
type app struct {
	key      ed25519.PrivateKey
	id       string // of the key
	audience string
}

func (a app) assertion() string {
	now := time.Now().Unix()
	signing := part(`{"alg":"EdDSA","typ":"app+jwt","kid":"%s"}`, a.id) + "." +
		part(`{"iss":"%[1]s","sub":"%[1]s","aud":"%[2]s","iat":%[3]d,"exp":%[4]d,"jti":"%[5]s"}`, a.id, a.audience, now, now+120, rand.Text())
	return signing + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(a.key, []byte(signing)))
}

func part(form string, values ...any) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, form, values...))
}

var streamAddress = regexp.MustCompile(`u='([^']+)'`)

// subscribe subscribes a new conversation of Claude Code to a job and returns the address of its stream.
func (t *target) subscribe(job string) (string, error) {
	body := fmt.Appendf(nil, `{"call":{"client":"claude-code"},"name":"job.done","arguments":{"job":"%s"}}`, job)
	answer, err := t.call(http.MethodPost, "/api/apps/v1/event-subscriptions", body)
	if err != nil {
		return "", err
	}
	var subscribed struct{ Addition struct{ Text string } }
	if err := json.Unmarshal(answer, &subscribed); err != nil {
		return "", err
	}
	found := streamAddress.FindStringSubmatch(subscribed.Addition.Text)
	if found == nil {
		return "", fmt.Errorf("no stream in %q", subscribed.Addition.Text)
	}
	return found[1], nil
}
