package wakeshift_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// A fakeCore is a small core in the test's own process: it verifies assertions
// for real, keeps the manifest, subscriptions and occurrences, and answers as
// docs/wire.md says. Its URL may also be served by a handler in place of the
// network, see roundTripper.
type fakeCore struct {
	URL    string
	key    string
	public ed25519.PublicKey
	server *httptest.Server // nil without a network

	streams *fakeStreams

	mu            sync.Mutex
	requests      []coreRequest
	jtis          map[string]bool
	events        map[string]map[string]any // the manifest, by name
	subscriptions []coreSubscription
	emitted       map[string]int // matched, by event and id
	sessions      int
	waiting       map[string]string // texts to annotate with, by session
	refusedJob    string            // emits for it are refused
	intercept     func(coreRequest) (answer, bool)
}

// A coreRequest is one request the core got.
type coreRequest struct {
	Method, Path string
	Body         map[string]any
	Items        []map[string]any // of a body that is an array
}

type coreSubscription struct {
	ID, Session, Event, Arguments string
}

// An answer is what the core says. A string body goes out as it is.
type answer struct {
	status int
	body   any
	header http.Header
}

func refuse(status int, code, message string) answer {
	return answer{status: status, body: map[string]any{"error": map[string]any{"code": code, "message": message}}}
}

func newFakeCore() *fakeCore {
	c := &fakeCore{
		jtis: map[string]bool{}, events: map[string]map[string]any{},
		emitted: map[string]int{}, waiting: map[string]string{},
		streams: &fakeStreams{conns: map[*fakeConn]struct{}{}},
	}
	c.key, c.public = newKey()
	return c
}

type cleaner interface{ Cleanup(func()) }

// startCore serves a core on the loopback interface until the test ends.
func startCore(t cleaner) *fakeCore {
	c := newFakeCore()
	c.server = httptest.NewServer(c)
	c.URL = c.server.URL
	t.Cleanup(c.server.Close)
	return c
}

// offlineCore is a core without a network, for tests with fake time.
func offlineCore() *fakeCore {
	c := newFakeCore()
	c.URL = "http://core.invalid"
	return c
}

// client reaches an offline core.
func (c *fakeCore) client() *http.Client {
	return &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		recorder := httptest.NewRecorder()
		c.ServeHTTP(recorder, r)
		return recorder.Result(), nil
	})}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// on answers requests itself where f says true.
func (c *fakeCore) on(f func(coreRequest) (answer, bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.intercept = f
}

// seen returns the requests to a path, or to all with "".
func (c *fakeCore) seen(path string) []coreRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []coreRequest
	for _, r := range c.requests {
		if path == "" || r.Path == path {
			found = append(found, r)
		}
	}
	return found
}

// hold lets a text wait for a conversation's next tool call.
func (c *fakeCore) hold(session, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[session] = text
}

func (c *fakeCore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.URL.Path == "/api/apps/v1/events/streams" {
		c.mu.Lock()
		err := c.authorize(r.Header.Get("Authorization"))
		c.mu.Unlock()
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		c.streams.serve(w, r)
		return
	}
	a := c.answer(r)
	for name, values := range a.header {
		w.Header()[name] = values
	}
	if text, ok := a.body.(string); ok {
		w.WriteHeader(a.status)
		io.WriteString(w, text)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	json.NewEncoder(w).Encode(a.body)
}

func (c *fakeCore) answer(r *http.Request) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.authorize(r.Header.Get("Authorization")); err != nil {
		return refuse(401, "unauthorized", err.Error())
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/api/apps/v1")
	if !ok {
		return refuse(404, "not_found", "no such path")
	}
	request := coreRequest{Method: r.Method, Path: path}
	body, err := io.ReadAll(r.Body)
	if err == nil && len(body) > 0 {
		if body[0] == '[' && path == "/events/emit" {
			err = json.Unmarshal(body, &request.Items)
		} else {
			err = json.Unmarshal(body, &request.Body)
		}
	}
	if err != nil {
		return refuse(400, "bad_request", "the body is not a JSON object")
	}
	c.requests = append(c.requests, request)
	if c.intercept != nil {
		if a, ok := c.intercept(request); ok {
			return a
		}
	}
	return c.serve(request)
}

// authorize verifies an assertion as a core does.
func (c *fakeCore) authorize(header string) error {
	token, ok := strings.CutPrefix(header, "Bearer ")
	parts := strings.Split(token, ".")
	if !ok || len(parts) != 3 {
		return errors.New("no assertion")
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return errors.New("the assertion is not base64url")
		}
	}
	if !ed25519.Verify(c.public, []byte(parts[0]+"."+parts[1]), decoded[2]) {
		return errors.New("the signature is wrong")
	}
	var head struct{ Alg, Typ, Kid string }
	var claims struct {
		Iss, Sub, Aud, Jti string
		Iat, Exp           int64
	}
	if json.Unmarshal(decoded[0], &head) != nil || json.Unmarshal(decoded[1], &claims) != nil {
		return errors.New("the assertion is not JSON")
	}
	sum := sha256.Sum256(c.public)
	kid := base64.RawURLEncoding.EncodeToString(sum[:16])
	now := time.Now().Unix()
	switch {
	case head.Alg != "EdDSA" || head.Typ != "app+jwt" || head.Kid != kid:
		return fmt.Errorf("the header is %+v", head)
	case claims.Iss == "" || claims.Iss != claims.Sub || claims.Aud != c.URL+"/api/apps":
		return fmt.Errorf("the claims are %+v", claims)
	case claims.Exp-claims.Iat != 120 || claims.Iat > now+30 || claims.Exp < now-30:
		return errors.New("the assertion is not of now")
	case claims.Jti == "" || c.jtis[claims.Jti]:
		return errors.New("the assertion was used before")
	}
	c.jtis[claims.Jti] = true
	return nil
}

func (c *fakeCore) serve(r coreRequest) answer {
	switch r.Method + " " + r.Path {
	case "PUT /manifest":
		return c.putManifest(r.Body)
	case "POST /events/emit":
		if r.Items != nil {
			return c.emitAll(r.Items)
		}
		return c.emit(r.Body)
	case "POST /event-subscriptions":
		return c.subscribe(r.Body)
	case "POST /event-subscriptions/unsubscribe":
		return c.unsubscribe(r.Body)
	case "POST /topics/annotate":
		return c.annotate(r.Body)
	case "POST /events/poll", "POST /events/subscribe", "POST /events/unsubscribe":
		return c.native(r)
	}
	return refuse(404, "not_found", "no such path")
}

func ok(body map[string]any) answer { return answer{status: 200, body: body} }

func (c *fakeCore) putManifest(body map[string]any) answer {
	events, isList := body["events"].([]any)
	if !isList {
		return refuse(400, "bad_request", "events must be a list")
	}
	c.events = map[string]map[string]any{}
	for _, e := range events {
		entry := e.(map[string]any)
		c.events[entry["name"].(string)] = entry
	}
	return ok(body)
}

// forget loses the manifest.
func (c *fakeCore) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = nil
}

func key(body map[string]any) string {
	arguments, _ := json.Marshal(body["arguments"])
	return string(arguments)
}

func (c *fakeCore) emit(body map[string]any) answer {
	name, _ := body["name"].(string)
	if c.events[name] == nil {
		return refuse(400, "unknown_event", "no such event")
	}
	if arguments, _ := body["arguments"].(map[string]any); c.refusedJob != "" && arguments["job"] == c.refusedJob {
		return refuse(400, "bad_arguments", "not that job")
	}
	id, _ := body["id"].(string)
	if matched, again := c.emitted[name+" "+id]; again && id != "" {
		return ok(map[string]any{"matched": matched, "duplicate": true})
	}
	matched := 0
	for _, s := range c.subscriptions {
		if s.Event == name && s.Arguments == key(body) {
			matched++
		}
	}
	c.emitted[name+" "+id] = matched
	return ok(map[string]any{"matched": matched})
}

func (c *fakeCore) emitAll(items []map[string]any) answer {
	results := make([]any, len(items))
	for i, item := range items {
		results[i] = c.emit(item).body
	}
	return ok(map[string]any{"results": results})
}

// refuseJob has emits for a job refused.
func (c *fakeCore) refuseJob(job string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusedJob = job
}

func (c *fakeCore) subscribe(body map[string]any) answer {
	name, _ := body["name"].(string)
	if c.events[name] == nil {
		return refuse(400, "unknown_event", "no such event")
	}
	call := body["call"].(map[string]any)
	session, _ := call["session"].(string)
	if session == "" {
		c.sessions++
		session = fmt.Sprintf("session-%d", c.sessions)
	}
	made := coreSubscription{Session: session, Event: name, Arguments: key(body)}
	created := true
	for _, s := range c.subscriptions {
		if s.Session == made.Session && s.Event == made.Event && s.Arguments == made.Arguments {
			made, created = s, false
		}
	}
	if created {
		made.ID = fmt.Sprintf("sub-%d", len(c.subscriptions)+1)
		c.subscriptions = append(c.subscriptions, made)
	}
	return ok(map[string]any{
		"event_subscription": map[string]any{"id": made.ID, "created": created},
		"session":            session,
		"addition": map[string]any{
			"text": fmt.Sprintf("You will be woken. session_key=%q", session),
			"meta": map[string]any{"core/session": session},
		},
		"agent": map[string]any{"harness": "test-harness", "via": "client"},
	})
}

func (c *fakeCore) unsubscribe(body map[string]any) answer {
	session, _ := body["call"].(map[string]any)["session"].(string)
	before := len(c.subscriptions)
	c.subscriptions = slices.DeleteFunc(c.subscriptions, func(s coreSubscription) bool {
		return s.Session == session && s.Event == body["name"] && s.Arguments == key(body)
	})
	return ok(map[string]any{"ended": len(c.subscriptions) < before})
}

func (c *fakeCore) annotate(body map[string]any) answer {
	session, _ := body["call"].(map[string]any)["session"].(string)
	text := c.waiting[session]
	delete(c.waiting, session)
	if text == "" {
		return ok(map[string]any{})
	}
	return ok(map[string]any{"text": text, "meta": map[string]any{"core/held": true}})
}

func (c *fakeCore) native(r coreRequest) answer {
	params, _ := r.Body["params"].(map[string]any)
	name, _ := params["name"].(string)
	failed := func(code int, message string) answer {
		return ok(map[string]any{"error": map[string]any{"code": code, "message": message, "data": map[string]any{"from": "core"}}})
	}
	event := c.events[name]
	switch {
	case event == nil:
		return failed(-32023, "NotFound")
	case r.Body["refused"] == true, event["public"] != true:
		return failed(-32024, "Forbidden")
	case r.Path == "/events/poll":
		return ok(map[string]any{"result": map[string]any{"events": []any{}, "cursor": "c1", "nextPollMs": 1000}})
	case r.Path == "/events/subscribe":
		return ok(map[string]any{"result": map[string]any{"id": "native-1", "refreshBefore": nil, "cursor": nil, "truncated": false}})
	}
	return ok(map[string]any{"result": map[string]any{}})
}
