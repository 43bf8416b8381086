package events

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// SubscribeOptions are the wishes of one subscription. The zero value is usable.
type SubscribeOptions struct {
	// Mode is the only mode to use; empty means the best that both sides can do.
	Mode Mode
	// Cursor is where to begin; empty means where the Store says, else from now.
	Cursor string
	// MaxAge leaves out what is older when the subscription goes on after a time, as
	// a gap; 0 means that nothing is too old.
	MaxAge time.Duration
	// MaxEvents bounds the answer to a poll; 0 leaves it to the server.
	MaxEvents int
	// TTL is how long a webhook should last without a refresh, which is made in
	// time; 0 leaves it to the server, [Forever] asks for no end.
	TTL time.Duration
	// RotateEvery is how often a webhook gets another secret; 0 means never. See
	// [Subscription.Rotate].
	RotateEvery time.Duration
	// Key tells subscriptions to the same event with the same arguments apart.
	Key string
}

// Forever asks for a webhook without an end.
const Forever time.Duration = -1

// Subscribe subscribes to an event. arguments are what encoding/json makes an
// object of, or nil for none. When it returns, the subscription stands: what
// happens from then on will come. It lives until it or the client is closed; ctx
// is for the beginning alone. If the Store knows the subscription, it goes on
// where that ended.
//
// The errors are those of the server (see [Error]), [ErrNotFound] if it has no
// such event, [ErrNoCompatibleDeliveryMode], [ErrInUse] for a second one of the
// same, and those of the Store.
func (c *Client) Subscribe(ctx context.Context, name string, arguments any, opts *SubscribeOptions) (*Subscription, error) {
	given, err := canonical(arguments)
	if err != nil {
		return nil, err
	}
	s := &Subscription{client: c, name: name, arguments: given, queue: newQueue(), seen: newRecent(), done: make(chan struct{}),
		keeping: make(chan struct{}, 1), rotations: make(chan chan<- error)}
	if opts != nil {
		s.opts = *opts
	}
	s.key = "subscriptions/" + keyOf(fmt.Sprintf("%q %q %q %s", c.opts.Label, s.opts.Key, name, given))
	if err := c.enter(s.key); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		c.leave(s.key)
		return nil, err
	}
	return s, nil
}

// enter reserves a subscription's key.
func (c *Client) enter(key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	if _, taken := c.live[key]; taken {
		return ErrInUse
	}
	c.live[key] = nil
	return nil
}

func (c *Client) leave(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.live, key)
}

// begin chooses the mode, begins in it, and lets it run.
func (s *Subscription) begin(ctx context.Context) error {
	descriptor, err := s.client.find(ctx, s.name)
	if err != nil {
		return err
	}
	if s.mode, err = s.choose(descriptor.Delivery); err != nil {
		return err
	}
	if err := s.load(ctx); err != nil {
		return err
	}
	if err := s.loadRecords(ctx); err != nil {
		return err
	}
	if s.opts.Cursor != "" {
		s.state.Cursor, s.state.Lost = s.opts.Cursor, false
	}
	if s.state.Mode == Webhook && s.mode != Webhook {
		s.leaveWebhook(ctx)
	}
	running, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	start := map[Mode]func(context.Context, context.Context) (func(), error){
		Poll: s.startPolling, Push: s.startStreaming, Webhook: s.startReceiving,
	}
	if s.state.Lost {
		s.queue.restore(&item{occurrence: s.gap(""), loss: true})
	}
	run, err := start[s.mode](ctx, running)
	if err == nil && s.opts.Cursor != "" { // from here on it goes on there, whatever happens
		err = s.update(ctx, func(*state) {})
	}
	if err != nil {
		cancel()
		return err
	}
	go func() {
		defer close(s.done)
		run()
	}()
	return s.client.register(s)
}

// register makes the subscription known, unless the client was closed meanwhile.
func (c *Client) register(s *Subscription) error {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.live[s.key] = s
	}
	c.mu.Unlock()
	if closed {
		s.Close()
		return ErrClosed
	}
	return nil
}

// choose is the best mode that both sides can do.
func (s *Subscription) choose(offered []Mode) (Mode, error) {
	preference := s.client.opts.Preference
	if s.opts.Mode != "" {
		preference = []Mode{s.opts.Mode}
	}
	for _, mode := range preference {
		known := mode == Poll || mode == Push || mode == Webhook && s.client.opts.Receiver != nil
		if known && slices.Contains(offered, mode) {
			return mode, nil
		}
	}
	return "", fmt.Errorf("%w: %q is delivered by %q", ErrNoCompatibleDeliveryMode, s.name, offered)
}
