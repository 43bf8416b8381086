package wakeshift

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// answerTimeout bounds one attempt. Native subscriptions take longest: the
	// core calls the subscriber's endpoint before it answers.
	answerTimeout = 30 * time.Second
	maxAnswer     = 32 << 20
)

// A coreClient speaks the app API of a core (docs/wire.md).
type coreClient struct {
	base   string
	signer *signer
	http   *http.Client
	own    bool // the http client was made here
	closed atomic.Bool
}

// A coreRequest is one call of the app API.
type coreRequest struct {
	method string
	path   string // after /api/apps/v1
	body   any
	// repeatable: doing it twice is the same as doing it once, so that it may be
	// sent again when it is unknown whether it arrived.
	repeatable bool
	// hurried: better no answer than a late one. One short attempt.
	hurried bool
}

func newCoreClient(base string, signer *signer, client *http.Client) *coreClient {
	c := &coreClient{base: base, signer: signer, own: client == nil}
	if client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 32
		c.http = &http.Client{Transport: transport}
	} else {
		copied := *client
		c.http = &copied
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

func (c *coreClient) close() {
	c.closed.Store(true)
	if c.own {
		c.http.CloseIdleConnections()
	}
}

// call makes a request, again where that is safe, and decodes the answer into
// answer. Its errors are *Error.
func (c *coreClient) call(ctx context.Context, r coreRequest, answer any) error {
	body, err := encodeBody(r.body)
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		if c.closed.Load() {
			return ErrClosed
		}
		failure := c.try(ctx, r, body, answer)
		if failure == nil {
			return nil
		}
		pause, again := failure.pause(r, attempt)
		if !again || !sleep(ctx, pause) {
			return failure.err
		}
	}
}

func encodeBody(body any) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	data, err := encodeJSON(body)
	if err != nil {
		return nil, fmt.Errorf("wakeshift: encoding a request: %w", err)
	}
	return data, nil
}

// encodeJSON is json.Marshal without the escaping meant for HTML.
func encodeJSON(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// try makes one attempt.
func (c *coreClient) try(ctx context.Context, r coreRequest, body []byte, answer any) *failure {
	timeout := answerTimeout
	if r.hurried {
		timeout = hurriedTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	response, err := c.send(ctx, r, body)
	if err != nil {
		return &failure{err: c.unreachable(err), cause: err}
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return &failure{err: c.unreachable(err), cause: err}
	}
	if response.StatusCode/100 == 2 {
		if len(data) > maxAnswer || !decodeObject(data, answer) {
			return &failure{err: c.badResponse(response.StatusCode), answered: true}
		}
		return nil
	}
	return c.refused(response, data)
}

// send signs and sends. Every attempt has its own assertion: the core takes each
// only once.
func (c *coreClient) send(ctx context.Context, r coreRequest, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, r.method, c.base+"/api/apps/v1"+r.path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	assertion, err := c.signer.assertion(c.base, time.Now())
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+assertion)
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return c.http.Do(request)
}

// refused makes a failure of an answer that is not a 2xx.
func (c *coreClient) refused(response *http.Response, data []byte) *failure {
	var body struct {
		Error *struct{ Code, Message, Reason string } `json:"error"`
	}
	f := &failure{status: response.StatusCode, retryAfter: response.Header.Get("Retry-After"), answered: true}
	if response.StatusCode < 400 || !decodeObject(data, &body) || body.Error == nil {
		f.err, f.foreign = c.badResponse(response.StatusCode), true
		return f
	}
	f.err = &Error{
		Status:  response.StatusCode,
		Code:    body.Error.Code,
		Message: cmp.Or(body.Error.Message, http.StatusText(response.StatusCode)),
		Reason:  body.Error.Reason,
	}
	return f
}

// decodeObject decodes a JSON object; false if data is anything else.
func decodeObject(data []byte, into any) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 0 && data[0] == '{' && json.Unmarshal(data, into) == nil
}

func (c *coreClient) unreachable(cause error) *Error {
	why := cause
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(cause, context.Canceled):
		why = context.Canceled
	case errors.As(cause, &timeout) && timeout.Timeout():
		why = context.DeadlineExceeded
	}
	return &Error{Code: CodeUnreachable, cause: cause, Message: fmt.Sprintf("no answer from the core at %s "+
		"(is WAKESHIFT_CORE or WithCore its address?): %v", c.base, why)}
}

func (c *coreClient) badResponse(status int) *Error {
	return &Error{Status: status, Code: CodeBadResponse, Message: fmt.Sprintf("%s answered %d, not as a core does: "+
		"is WAKESHIFT_CORE or WithCore its address?", c.base, status)}
}
