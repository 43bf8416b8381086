package appapi_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/appapi"
	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/refusal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A lab is a core, the API before it, and an app that calls it.
type lab struct {
	*coretest.Bench
	api http.Handler
	app caller
}

func setup(t testing.TB, change ...func(*core.Options)) *lab {
	t.Helper()
	b := coretest.New(t, change...)
	api := appapi.New(b.Core, appapi.Options{})
	return &lab{b, api, caller{b.App.ID, b.Key, api}}
}

// another is a second app with the same manifest.
func (l *lab) another() caller {
	l.Helper()
	app, key := l.NewApp("other")
	return caller{app.ID, key, l.api}
}

// A caller is an app's SDK.
type caller struct {
	id  string
	key credential.AppKey
	api http.Handler
}

// members are those of a JSON object.
type members map[string]any

// assertion signs one as SDKs do, with the header and claims changed as asked.
func (c caller) assertion(t testing.TB, change ...func(header, claims members)) string {
	t.Helper()
	kid := credential.KeyID(c.key.PublicKey())
	at := time.Now().Unix()
	header := members{"alg": "EdDSA", "typ": "app+jwt", "kid": kid}
	claims := members{"iss": kid, "sub": kid, "aud": coretest.PublicURL + "/api/apps", "iat": at, "exp": at + 60, "jti": credential.NewID()}
	for _, f := range change {
		f(header, claims)
	}
	signed := encoded(t, header) + "." + encoded(t, claims)
	return signed + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(c.key.PrivateKey(), []byte(signed)))
}

func encoded(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// request is a request that the app signed.
func (c caller) request(t testing.TB, ctx context.Context, method, path string, body io.Reader) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(ctx, method, appapi.Prefix+path, body)
	r.Header.Set("Authorization", "Bearer "+c.assertion(t))
	r.Header.Set("Content-Type", "application/json")
	return r
}

// send makes a request that the app signed.
func (c caller) send(t testing.TB, method, path, body string) reply {
	t.Helper()
	return answered(c.api, c.request(t, t.Context(), method, path, strings.NewReader(body)))
}

// post is a POST that must be accepted; it gives the answer.
func (c caller) post(t testing.TB, path, body string) members {
	t.Helper()
	return c.send(t, http.MethodPost, path, body).good(t)
}

// A reply is what was answered.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func answered(api http.Handler, r *http.Request) reply {
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	return reply{w.Code, w.Header(), w.Body.Bytes()}
}

// good is the answer of a call that must have been accepted.
func (r reply) good(t testing.TB) members {
	t.Helper()
	if r.status != http.StatusOK {
		t.Fatalf("answered %d %s", r.status, r.body)
	}
	return r.object(t)
}

// object is the answer, which is one JSON object whatever the status.
func (r reply) object(t testing.TB) (answer members) {
	t.Helper()
	if kind := r.header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("the answer is of type %q", kind)
	}
	if length := r.header.Get("Content-Length"); length != fmt.Sprint(len(r.body)) {
		t.Errorf("Content-Length is %s for %d bytes", length, len(r.body))
	}
	if err := json.Unmarshal(r.body, &answer); err != nil {
		t.Fatalf("%d %q: %v", r.status, r.body, err)
	}
	return answer
}

// refused is the code and message of a call that must have been refused, in the form and with the status of the catalogue.
func (r reply) refused(t testing.TB) (code refusal.Code, message string) {
	t.Helper()
	r.object(t)
	var answer struct {
		Error *struct {
			Code    refusal.Code `json:"code"`
			Message string       `json:"message"`
			Reason  string       `json:"reason"`
		} `json:"error"`
	}
	decoder := json.NewDecoder(bytes.NewReader(r.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&answer); err != nil || answer.Error == nil || answer.Error.Message == "" {
		t.Errorf("%d %s is no error: %v", r.status, r.body, err)
		return "", ""
	}
	code = answer.Error.Code
	if entry := refusal.Lookup(code); entry.Code != code || entry.Status != r.status {
		t.Errorf("answered %d with the code %s", r.status, code)
	}
	if len(r.body) > 2000 {
		t.Errorf("an error of %d bytes", len(r.body))
	}
	return code, answer.Error.Message
}

// says is "code: message" of a call that must have been refused.
func (r reply) says(t testing.TB) string {
	t.Helper()
	code, message := r.refused(t)
	return string(code) + ": " + message
}

// quote writes a text as a JSON string.
func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return string(b)
}

// at gives what stands at a path of an answer; nil when there is nothing.
func (m members) at(path ...string) any {
	var v any = map[string]any(m)
	for _, name := range path {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// emitJob is the body of an emit that a job's crawl finished.
func emitJob(job, text string) string {
	return `{"name":"crawl.finished","arguments":{"job":"` + job + `"},"payload":{"pages":1},"text":` + quote(text) + `}`
}

// subscribeJob is the body of a subscription to a job's crawl; call is what is in the call.
func subscribeJob(call, job string) string {
	return `{"call":{` + call + `},"name":"crawl.finished","arguments":{"job":"` + job + `"}}`
}
