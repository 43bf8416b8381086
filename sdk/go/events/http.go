package events

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// HTTP says where a server is that speaks Streamable HTTP.
type HTTP struct {
	// URL is the server's endpoint.
	URL string
	// Client makes the requests, and brings what authorizes them; nil means
	// [http.DefaultClient]. It is copied: its Timeout, which would end streams, is
	// not used, and redirects are not followed, since they could take headers and
	// secrets elsewhere.
	Client *http.Client
	// Header is added to every request.
	Header http.Header
	// Name and Version are what the client calls itself; empty means "rouse-events"
	// and "1".
	Name, Version string
	// Revision is the revision of MCP to speak, "2026-07-28" or an older one; empty
	// means the newest that both sides know.
	Revision string
}

// A httpConnection speaks JSON-RPC over HTTP by itself.
type httpConnection struct {
	at     HTTP
	client *http.Client
	ids    atomic.Int64
	offers offer

	mu       sync.Mutex // the old handshake, which may have to be repeated
	revision string
	session  string // of the old handshake; empty if there is none
}

// dialHTTP finds out what the server speaks and offers.
func dialHTTP(ctx context.Context, at HTTP) (*httpConnection, error) {
	address, err := url.Parse(at.URL)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return nil, errors.New("events: HTTP.URL must be an absolute http or https address")
	}
	at.Name, at.Version = cmp.Or(at.Name, "rouse-events"), cmp.Or(at.Version, "1")
	base := at.Client
	if base == nil {
		base = http.DefaultClient
	}
	client := *base
	client.Timeout = 0
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	at.Header = at.Header.Clone()
	c := &httpConnection{at: at, client: &client, revision: modernRevision}
	if at.Revision == "" || at.Revision >= modernRevision {
		err := c.discover(ctx)
		if err == nil || at.Revision != "" || !isOld(err) {
			return c, err
		}
	}
	return c, c.initialize(ctx)
}

// discover asks a server of the modern revision what it offers.
func (c *httpConnection) discover(ctx context.Context) error {
	result, err := c.call(ctx, request{method: methodDiscover})
	if err != nil {
		return err
	}
	var discovered struct {
		SupportedVersions []string `json:"supportedVersions"`
	}
	if json.Unmarshal(result, &discovered) != nil {
		return errMalformed
	}
	for _, version := range discovered.SupportedVersions {
		if version == modernRevision {
			c.offers = readOffer(result)
			return nil
		}
	}
	return &Error{Code: codeVersion, Message: "the server does not speak " + modernRevision}
}

// isOld says that what discovering failed with may come of an older server: they
// have many ways to say that they do not know the method.
func isOld(err error) bool {
	if status, ok := errors.AsType[*HTTPError](err); ok {
		return status.Status == http.StatusBadRequest || status.Status == http.StatusNotFound ||
			status.Status == http.StatusMethodNotAllowed || status.Status == http.StatusNotAcceptable
	}
	_, refused := errors.AsType[*Error](err)
	return refused
}

// initialize does the old handshake.
func (c *httpConnection) initialize(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	revision := legacyRevision
	if c.at.Revision != "" {
		revision = c.at.Revision
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision, c.session = revision, ""
	id, response, err := c.post(ctx, revision, "", request{method: methodInitialize, params: map[string]any{
		"protocolVersion": revision, "clientInfo": c.info(), "capabilities": clientCapabilities(),
	}})
	if err != nil {
		return err
	}
	result, err := readAnswer(response, id)
	if err != nil {
		return fmt.Errorf("events: initializing: %w", err)
	}
	var initialized struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &initialized) != nil || initialized.ProtocolVersion == "" || initialized.ProtocolVersion >= modernRevision {
		return errMalformed
	}
	c.offers, c.revision, c.session = readOffer(result), initialized.ProtocolVersion, response.Header.Get("Mcp-Session-Id")
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": noteInitialized})
	if err != nil {
		return err
	}
	accepted, err := c.send(ctx, c.revision, c.session, request{method: noteInitialized}, body)
	if err != nil {
		return err
	}
	discard(accepted)
	if accepted.StatusCode/100 != 2 {
		return httpError(accepted)
	}
	return nil
}

func (c *httpConnection) info() map[string]any {
	return map[string]any{"name": c.at.Name, "version": c.at.Version}
}

func (c *httpConnection) offer() offer  { return c.offers }
func (c *httpConnection) label() string { return c.at.URL }

// close ends the session of the old handshake, if it can.
func (c *httpConnection) close() error {
	revision, session := c.spoken()
	if session == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, c.at.URL, nil)
	if err != nil {
		return err
	}
	c.head(r, revision, session)
	if response, err := c.client.Do(r); err == nil { // servers may refuse it, or be gone
		discard(response)
	}
	return nil
}

func (c *httpConnection) spoken() (revision, session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision, c.session
}

func (c *httpConnection) call(ctx context.Context, r request) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, r.wait())
	defer cancel()
	id, response, err := c.ask(ctx, r)
	if err != nil {
		return nil, err
	}
	return readAnswer(response, id)
}

// ask makes a request in the session there is. A server that has forgotten the
// session is greeted again.
func (c *httpConnection) ask(ctx context.Context, r request) (id string, response *http.Response, err error) {
	revision, session := c.spoken()
	id, response, err = c.post(ctx, revision, session, r)
	if err != nil || session == "" || response.StatusCode != http.StatusNotFound {
		return id, response, err
	}
	discard(response)
	if _, now := c.spoken(); now == session {
		if err := c.initialize(ctx); err != nil {
			return "", nil, err
		}
	}
	revision, session = c.spoken()
	return c.post(ctx, revision, session, r)
}

// post sends a request under an id of its own.
func (c *httpConnection) post(ctx context.Context, revision, session string, r request) (id string, _ *http.Response, err error) {
	number := c.ids.Add(1)
	params := map[string]any{}
	for name, value := range r.params {
		params[name] = value
	}
	if revision >= modernRevision {
		params["_meta"] = map[string]any{metaRevision: revision, metaClient: c.info(), metaCapabilities: clientCapabilities()}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": number, "method": r.method, "params": params})
	if err != nil {
		return "", nil, fmt.Errorf("events: %s: %w", r.method, err)
	}
	response, err := c.send(ctx, revision, session, r, body)
	return strconv.FormatInt(number, 10), response, err
}

func (c *httpConnection) send(ctx context.Context, revision, session string, r request, body []byte) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, c.at.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("events: %s: %w", r.method, err)
	}
	c.head(q, revision, session)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	if revision >= modernRevision {
		q.Header.Set("Mcp-Method", r.method)
		if r.name != "" {
			q.Header.Set("Mcp-Name", headerValue(r.name))
		}
	}
	response, err := c.client.Do(q)
	if err != nil {
		return nil, fmt.Errorf("events: %s: %w", r.method, err)
	}
	return response, nil
}

func (c *httpConnection) head(q *http.Request, revision, session string) {
	for name, values := range c.at.Header {
		q.Header[name] = values
	}
	q.Header.Set("MCP-Protocol-Version", revision)
	if session != "" {
		q.Header.Set("Mcp-Session-Id", session)
	}
}

// headerValue writes what is no plain ASCII as the base protocol has it.
func headerValue(text string) string {
	plain := strings.TrimSpace(text) == text && !strings.HasPrefix(text, "=?base64?")
	for i := range len(text) {
		plain = plain && text[i] >= ' ' && text[i] <= '~'
	}
	if plain {
		return text
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
}

// open makes a request that is answered by a stream. An error is returned as one,
// not as the stream's first message.
func (c *httpConnection) open(ctx context.Context, r request) (stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	id, response, err := c.ask(ctx, r)
	if err != nil {
		cancel()
		return nil, err
	}
	if !isStream(response) {
		defer cancel()
		if _, err := readAnswer(response, id); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("events: the server answered %s without a stream", r.method)
	}
	return &httpStream{body: response.Body, events: newSSEReader(response.Body, mostMessage), cancel: cancel}, nil
}

type httpStream struct {
	body   io.Closer
	events *sseReader
	cancel context.CancelFunc
}

func (s *httpStream) next() (message, error) {
	data, err := s.events.next()
	if err != nil {
		return message{}, err
	}
	return readMessage(data)
}

func (s *httpStream) close() {
	s.cancel()
	s.body.Close()
}

func contentType(response *http.Response) string {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return kind
}

func isStream(response *http.Response) bool {
	return response.StatusCode == http.StatusOK && contentType(response) == "text/event-stream"
}

// readAnswer reads the response to the request with that id, and closes the body.
func readAnswer(response *http.Response, id string) (json.RawMessage, error) {
	defer discard(response)
	if isStream(response) {
		return readStreamed(newSSEReader(io.LimitReader(response.Body, 2*mostMessage), mostMessage), id)
	}
	if contentType(response) != "application/json" {
		return nil, httpError(response)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, mostMessage+1))
	if err != nil {
		return nil, fmt.Errorf("events: reading an answer: %w", err)
	}
	if len(data) > mostMessage {
		return nil, errTooLong
	}
	answer, err := readMessage(data)
	switch {
	case err == nil && answer.Error != nil && !concernsCaller(response.StatusCode):
		return nil, answer.Error // its id may be null, of a request that was not understood
	case response.StatusCode != http.StatusOK:
		return nil, httpError(response)
	case err != nil:
		return nil, err
	case !answer.isResponse() || string(answer.ID) != id:
		return nil, errMalformed
	}
	return answer.outcome()
}

// concernsCaller says that a status is about who called, or how often, and not
// about what was asked.
func concernsCaller(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests || status >= 500
}

// readStreamed finds the response among what else a stream may carry.
func readStreamed(events *sseReader, id string) (json.RawMessage, error) {
	for {
		data, err := events.next()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, fmt.Errorf("events: reading an answer: %w", err)
		}
		if m, err := readMessage(data); err == nil && m.isResponse() && (string(m.ID) == id || m.Error != nil && present(m.ID) == nil) {
			return m.outcome()
		}
	}
}

// discard reads a little of what is left, so that the connection can be used
// again, and closes the body.
func discard(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10) // it is of no interest
	response.Body.Close()
}

func httpError(response *http.Response) error {
	failure := &HTTPError{Status: response.StatusCode}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		failure.RetryAfter = time.Duration(min(seconds, 3600)) * time.Second
	}
	return failure
}
