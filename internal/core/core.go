package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Options are what a core is made of. Store, Master and PublicURL are required.
type Options struct {
	// Store may be a [store.Shared]: then other nodes may serve the same database, and Bus must reach them.
	Store  store.Store
	Bus    bus.Bus            // nil: a bus of this process alone
	Master *credential.Master // everything handed out is derived from it
	// PublicURL begins every address that is handed out, such as https://wake.example.com, without a slash at its end.
	PublicURL string
	// Audiences are further addresses under which apps may know this core.
	Audiences []string
	// Webhooks reaches native subscribers; nil offers no webhook delivery.
	Webhooks Webhooks
	Logger   *slog.Logger // nil: discards
	// Retention is how long occurrences are kept; 0 means 7 days.
	Retention time.Duration
	// RetentionSize is how many bytes the database may take before the oldest occurrences go, younger ones than Retention
	// too; 0 is no limit.
	RetentionSize int64
	// Limits bound what one app and one user may do and keep.
	Limits Limits
	// MaxSubscriptions is how many live subscriptions a conversation may have; 0 means wake.MaxSubscription.
	MaxSubscriptions int
}

// DefaultRetention is how long occurrences are kept when nothing is said.
const DefaultRetention = 7 * 24 * time.Hour

// Core is the engine. All methods are safe for concurrent use. Errors are refusals (package refusal) where the caller or its
// input is at fault; anything else is a fault of the core or its database.
type Core struct {
	store         store.Store
	bus           bus.Bus
	master        *credential.Master
	publicURL     string
	audiences     []string
	webhooks      Webhooks
	log           *slog.Logger
	retention     time.Duration
	retentionSize int64
	limits        *limits
	maxSubs       int
	epoch         string // of the log

	assertions credential.AssertionVerifier
	keys       keyCache
	manifests  manifestCache
	presence   presence
	streaming  streaming
	nodes      *nodes // nil: this is the only one
	verified   *verifications
	hosts      hosts // of webhooks
	feed       trace.Feed

	deliveries chan struct{} // hints the webhook workers
	lookedFor  atomic.Int64  // when suspended webhooks were, in nanoseconds since 1970
	crowds     chan struct{} // full while something is written for a crowd
	erased     chan struct{} // hints the scrubber
	stop       context.CancelFunc
	done       sync.WaitGroup
}

// New starts a core. The caller closes it, and then the store.
func New(ctx context.Context, o Options) (*Core, error) {
	if o.Store == nil || o.Master == nil || o.PublicURL == "" {
		return nil, errors.New("core: store, master and public URL are required")
	}
	c := &Core{
		store: o.Store, bus: o.Bus, master: o.Master, webhooks: o.Webhooks, log: o.Logger, retention: o.Retention, maxSubs: o.MaxSubscriptions,
		retentionSize: o.RetentionSize, limits: newLimits(o.Limits), verified: newVerifications(),
		publicURL: strings.TrimRight(o.PublicURL, "/"), deliveries: make(chan struct{}, 1), crowds: make(chan struct{}, 1), erased: make(chan struct{}, 1),
	}
	if c.bus == nil {
		c.bus = new(bus.Local)
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.retention == 0 {
		c.retention = DefaultRetention
	}
	if c.maxSubs == 0 {
		c.maxSubs = wake.MaxSubscription
	}
	for _, address := range append([]string{c.publicURL}, o.Audiences...) {
		c.audiences = append(c.audiences, strings.TrimRight(address, "/")+"/api/apps")
	}
	var log store.Log
	if err := c.store.View(ctx, func(r store.Reader) (err error) {
		log, err = r.Log()
		return err
	}); err != nil {
		return nil, fmt.Errorf("reading the log's state: %w", err)
	}
	c.epoch = log.Epoch
	if shared, ok := c.store.(store.Shared); ok {
		var err error
		if c.nodes, err = joinNodes(ctx, shared, c.bus, &c.presence, c.log); err != nil {
			return nil, err
		}
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	if c.nodes != nil {
		c.done.Go(func() { c.nodes.run(running) })
	}
	c.done.Go(func() { c.sweep(running) })
	c.hintScrub() // of what was erased before
	c.done.Go(func() { c.scrubErased(running) })
	if c.webhooks != nil {
		c.done.Go(func() { c.deliver(running) })
	}
	return c, nil
}

// Close ends the core's own work: sweeping and webhook delivery. What was accepted stays in the store. Streams and requests
// are ended by those who serve them. It is safe to call twice.
func (c *Core) Close() {
	c.stop()
	c.done.Wait()
}

// PublicURL is the address that begins every URL the core hands out.
func (c *Core) PublicURL() string { return c.publicURL }

// Epoch is that of the core's log; occurrence ids contain it.
func (c *Core) Epoch() string { return c.epoch }

// Feed is the live account of what the core does.
func (c *Core) Feed() *trace.Feed { return &c.feed }

// Ready reports why the core cannot serve now; nil when it can.
func (c *Core) Ready(ctx context.Context) error {
	return c.store.View(ctx, func(r store.Reader) error {
		_, err := r.Log()
		return err
	})
}

// now is the time as the store keeps it, so that what was written and what is read back are equal.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// fault turns a store's error into what a caller may be told. ErrFull, ErrReadOnly and ErrSyncFailed are the operator's to mend
// and say so.
func fault(err error) error {
	switch {
	case err == nil || refusal.Of(err) != nil:
		return err
	case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrReadOnly), errors.Is(err, store.ErrClosed),
		errors.Is(err, store.ErrSyncFailed), errors.Is(err, store.ErrUnavailable):
		return fmt.Errorf("%w: %w", refusal.New(refusal.Unavailable, "the core cannot write now: try again later"), err)
	}
	return err
}
