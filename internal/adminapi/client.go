package adminapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/trace"
)

// ErrNotRunning means that no core answers at the data directory's socket.
var ErrNotRunning = errors.New("no core is running")

// callTime bounds a call that is not a tail.
const callTime = 30 * time.Second

// A Client administers the core that runs on a data directory. Its errors are refusals (package refusal) where the core said
// no, and wrap [ErrNotRunning] where none answers. It is safe for concurrent use.
type Client struct {
	data string
	http *http.Client
}

// NewClient is a client for the core on a data directory. It connects when it is used.
func NewClient(data string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", Socket(data))
	}
	return &Client{data: data, http: &http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status says what core answers.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var answer Status
	return answer, c.call(ctx, http.MethodGet, "/v1/status", nil, &answer)
}

// Apps lists the apps, oldest first.
func (c *Client) Apps(ctx context.Context) ([]App, error) {
	var answer struct{ Apps []App }
	err := c.call(ctx, http.MethodGet, "/v1/apps", nil, &answer)
	return answer.Apps, err
}

// CreateApp makes an app. An empty name is the id.
func (c *Client) CreateApp(ctx context.Context, id, name string) (App, error) {
	var answer App
	return answer, c.call(ctx, http.MethodPost, "/v1/apps", object{"id": id, "name": name}, &answer)
}

// DeleteApp removes an app with everything that is its.
func (c *Client) DeleteApp(ctx context.Context, app string) error {
	return c.call(ctx, http.MethodDelete, of(app, ""), nil, nil)
}

// Keys lists an app's keys, revoked ones too.
func (c *Client) Keys(ctx context.Context, app string) ([]Key, error) {
	var answer struct{ Keys []Key }
	err := c.call(ctx, http.MethodGet, of(app, "/keys"), nil, &answer)
	return answer.Keys, err
}

// CreateKey makes a key for an app. An empty name is "default".
func (c *Client) CreateKey(ctx context.Context, app, name string) (NewKey, error) {
	var answer NewKey
	return answer, c.call(ctx, http.MethodPost, of(app, "/keys"), object{"name": name}, &answer)
}

// RevokeKey ends a key.
func (c *Client) RevokeKey(ctx context.Context, app, key string) error {
	return c.call(ctx, http.MethodDelete, of(app, "/keys/"+url.PathEscape(key)), nil, nil)
}

// Emit emits for an app.
func (c *Client) Emit(ctx context.Context, app string, e Emit) (Emitted, error) {
	var answer Emitted
	return answer, c.call(ctx, http.MethodPost, of(app, "/emit"), e, &answer)
}

// Subscriptions lists an app's live subscriptions and webhooks.
func (c *Client) Subscriptions(ctx context.Context, app string) ([]Subscription, error) {
	var answer struct{ Subscriptions []Subscription }
	err := c.call(ctx, http.MethodGet, of(app, "/subscriptions"), nil, &answer)
	return answer.Subscriptions, err
}

// Tail calls f with each trace entry until ctx ends, which is no error, or f fails, or the core stops: then the error wraps
// [ErrNotRunning]. Before the first entry it calls started, from when on nothing is missed; started may be nil.
func (c *Client) Tail(ctx context.Context, started func(), f func(trace.Entry) error) error {
	response, err := c.send(ctx, http.MethodGet, "/v1/tail", nil)
	if err != nil {
		return unlessDone(ctx, err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			if started != nil {
				started()
				started = nil
			}
			continue
		}
		var entry trace.Entry
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			return fmt.Errorf("reading the core's tail: %w", err)
		}
		if err := f(entry); err != nil {
			return err
		}
	}
	return unlessDone(ctx, fmt.Errorf("%w any more: it has stopped", ErrNotRunning))
}

func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func of(app, rest string) string { return "/v1/apps/" + url.PathEscape(app) + rest }

func (c *Client) call(ctx context.Context, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if answer == nil {
		return nil
	}
	return decodeAnswer(response.Body, answer)
}

func decodeAnswer(body io.Reader, answer any) error {
	if err := json.NewDecoder(body).Decode(answer); err != nil {
		return fmt.Errorf("reading the core's answer: %w", err)
	}
	return nil
}

// send makes a request and returns the response if it is a good one.
func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content bytes.Buffer
	if body != nil {
		encoder := json.NewEncoder(&content)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(body); err != nil {
			return nil, fmt.Errorf("writing a request: %w", err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://rouse"+path, &content)
	if err != nil {
		return nil, fmt.Errorf("writing a request: %w", err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	var refused struct {
		Error struct {
			Code    refusal.Code
			Message string
		}
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&refused); err != nil || refused.Error.Code == "" {
		return nil, fmt.Errorf("the core answered %s", response.Status)
	}
	return nil, refusal.New(refused.Error.Code, "%s", refused.Error.Message)
}

// unreachable says what to do about a socket that does not answer.
func (c *Client) unreachable(err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the core's data directory %s belongs to another user: run this command as that user", c.data)
	}
	return fmt.Errorf("%w on the data directory %s: start one with `rouse serve`, or name its directory with --data or ROUSE_DATA",
		ErrNotRunning, c.data)
}
