package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"
)

// Options configure a [Client]. The zero value is usable.
type Options struct {
	// Store keeps what must outlive the process; nil means a [MemoryStore], with
	// which a restart begins anew.
	Store Store
	// Label names the server, and the account there, in the Store; empty means the
	// server's address, or its name on a [Wire]. It keeps the subscriptions of two
	// accounts apart.
	Label string
	// Receiver takes webhooks. Without one no event is delivered by webhook.
	Receiver *Receiver
	// Preference are the modes to choose from, the best first; nil means webhook,
	// push, poll.
	Preference []Mode
	// Logger is told of trouble that is dealt with; nil means nobody is. It gets no
	// payload, secret or cursor.
	Logger *slog.Logger
	// Unadvertised asks a server for events although it does not advertise any: some
	// server libraries lose what they advertise.
	Unadvertised bool
	// Silence is how long a stream may say nothing before it counts as dead; 0
	// means a minute, twice the longest heartbeat.
	Silence time.Duration
	// LeastPoll is the least time between two polls; 0 means a second.
	LeastPoll time.Duration
	// RetryWindow is how long a server may be expected to retry webhooks; 0 means
	// five minutes. Whoever was away for longer has events replayed; one that is too
	// short costs no more than that.
	RetryWindow time.Duration
}

// A Mode is a way in which events are delivered.
type Mode string

// The delivery modes.
const (
	Poll    Mode = "poll"
	Push    Mode = "push"
	Webhook Mode = "webhook"
)

// A Client is a client of one server's events. All methods are safe for
// concurrent use.
type Client struct {
	conn connection
	opts Options
	log  *slog.Logger

	mu     sync.Mutex
	live   map[string]*Subscription // by key; nil while it is being made
	closed bool
}

// Dial connects to a server over HTTP. It speaks the protocol by itself, so that
// streams and headers are as the extension has them; an MCP client may talk to the
// same server beside it, with the same [http.Client]. A server that does not
// advertise events is [ErrNotOffered].
func Dial(ctx context.Context, at HTTP, opts *Options) (*Client, error) {
	conn, err := dialHTTP(ctx, at)
	if err != nil {
		return nil, err
	}
	return newClient(conn, opts)
}

// Over makes a client that shares the connection of an MCP client, which must be
// connected. The client ends when that connection does. A server that does not
// advertise events is [ErrNotOffered].
func Over(wire *Wire, opts *Options) (*Client, error) {
	conn := wire.connection()
	if conn == nil {
		return nil, errors.New("events: the MCP client is not connected")
	}
	return newClient(conn, opts)
}

func newClient(conn connection, opts *Options) (*Client, error) {
	c := &Client{conn: conn, live: map[string]*Subscription{}}
	if opts != nil {
		c.opts = *opts
	}
	if !c.opts.Unadvertised && !conn.offer().events {
		conn.close()
		return nil, ErrNotOffered
	}
	if c.opts.Store == nil {
		c.opts.Store = &MemoryStore{}
	}
	if c.opts.Label == "" {
		c.opts.Label = conn.label()
	}
	if c.opts.Preference == nil {
		c.opts.Preference = []Mode{Webhook, Push, Poll}
	}
	if c.log = c.opts.Logger; c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		option *time.Duration
		value  time.Duration
	}{{&c.opts.Silence, time.Minute}, {&c.opts.LeastPoll, time.Second}, {&c.opts.RetryWindow, 5 * time.Minute}} {
		if *d.option <= 0 {
			*d.option = d.value
		}
	}
	return c, nil
}

// Close ends all subscriptions here, and waits for that. At the server they stay
// as they are, so that a later process with the same Store goes on with them.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	var live []*Subscription
	for _, s := range c.live {
		if s != nil {
			live = append(live, s)
		}
	}
	c.mu.Unlock()
	for _, s := range live {
		s.Close()
	}
	return c.conn.close()
}

// A Descriptor describes an event that a server has.
type Descriptor struct {
	Name          string          `json:"name"`
	Description   string          `json:"description"`
	Delivery      []Mode          `json:"delivery"`
	InputSchema   json.RawMessage `json:"inputSchema"`   // of the arguments
	PayloadSchema json.RawMessage `json:"payloadSchema"` // of an occurrence's data
	Meta          json.RawMessage `json:"_meta"`
}

// What a list may have.
const (
	mostPages       = 1_000
	mostDescriptors = 100_000
)

// List lists the server's events, page by page as the loop goes on. An error ends
// it.
func (c *Client) List(ctx context.Context) iter.Seq2[Descriptor, error] {
	return func(yield func(Descriptor, error) bool) {
		var cursor *string
		for pages, listed := 0, 0; ; pages++ {
			params := map[string]any{}
			if cursor != nil {
				params["cursor"] = *cursor
			}
			result, err := c.conn.call(ctx, request{method: methodList, params: params})
			var page struct {
				Events     []Descriptor `json:"events"`
				NextCursor *string      `json:"nextCursor"`
			}
			if err == nil && json.Unmarshal(result, &page) != nil {
				err = errMalformed
			}
			if listed += len(page.Events); err == nil && (pages >= mostPages || listed > mostDescriptors) {
				err = fmt.Errorf("events: the list does not end after %d pages", pages)
			}
			if err == nil && cursor != nil && page.NextCursor != nil && *cursor == *page.NextCursor {
				err = errors.New("events: the list repeats a page")
			}
			if err != nil {
				yield(Descriptor{}, err)
				return
			}
			for _, d := range page.Events {
				if !yield(d, nil) {
					return
				}
			}
			if cursor = page.NextCursor; cursor == nil {
				return
			}
		}
	}
}

// find looks an event up in the list.
func (c *Client) find(ctx context.Context, name string) (Descriptor, error) {
	for d, err := range c.List(ctx) {
		if err != nil || d.Name == name {
			return d, err
		}
	}
	return Descriptor{}, fmt.Errorf("events: %q: %w", name, ErrNotFound)
}
