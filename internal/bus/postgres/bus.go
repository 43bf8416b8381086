package postgres

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/postgres"
)

// A Follower looks at a log for what has come.
type Follower interface {
	// Look gives what has come since the last Look, or since the Follower was made: the keys of whoever has reason to look
	// again, or, as all, that it is too much to list. It is called from one goroutine at a time.
	Look(ctx context.Context) (keys []bus.Key, all bool, err error)
}

// Options say how a Bus works. Database and Channel are required.
type Options struct {
	Database *postgres.Database
	// Channel is the name under which the nodes of one log hear each other.
	Channel string
	// Follower looks for what no hint told of. Nil: nobody does.
	Follower Follower
	// Logger is told when hints cannot be sent or heard. Nil logs nothing.
	Logger *slog.Logger

	// How often the Follower looks while this node hears the others, and while it does not; 0 is the usual.
	LookEach, LookDeafEach time.Duration
}

const (
	usualLook     = time.Second
	usualDeafLook = 75 * time.Millisecond
	// maxQueued is how many keys wait to be sent at most; more are everything.
	maxQueued = 4096
)

// A Bus passes hints on within this node and to the other nodes. It implements [bus.Bus] and is safe for concurrent use.
type Bus struct {
	options Options
	local   bus.Local
	name    string // of this node, made at its start
	log     *slog.Logger

	mu     sync.Mutex
	queued map[bus.Key]struct{}
	all    bool          // everything is to be hinted at
	filled chan struct{} // there is something to send

	heard    chan bool // whether the node has begun to hear the others, or ceased
	end      context.CancelFunc
	finished sync.WaitGroup
}

var _ bus.Bus = (*Bus)(nil)

// Start gives a Bus and starts its goroutines, which end with Close. A database that cannot be reached is tried again and
// again: until then hints reach this node only.
func Start(o Options) *Bus {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.LookEach == 0 {
		o.LookEach = usualLook
	}
	if o.LookDeafEach == 0 {
		o.LookDeafEach = usualDeafLook
	}
	b := &Bus{options: o, name: rand.Text(), log: o.Logger, queued: map[bus.Key]struct{}{}, filled: make(chan struct{}, 1),
		heard: make(chan bool)}
	ctx, end := context.WithCancel(context.Background())
	b.end = end
	b.finished.Go(func() { b.send(ctx) })
	if !o.Database.Pooled() {
		b.finished.Go(func() { b.listen(ctx) })
	}
	if o.Follower != nil {
		b.finished.Go(func() { b.look(ctx) })
	}
	return b
}

// Hint implements [bus.Bus].
func (b *Bus) Hint(keys ...bus.Key) {
	b.local.Hint(keys...)
	if b.options.Database.Pooled() {
		return // nobody hears it
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range keys {
		if len(b.queued) == maxQueued {
			b.all = true
		}
		if b.all {
			break
		}
		b.queued[key] = struct{}{}
	}
	select {
	case b.filled <- struct{}{}:
	default:
	}
}

// Watch implements [bus.Bus].
func (b *Bus) Watch(keys ...bus.Key) *bus.Watch { return b.local.Watch(keys...) }

// Notify implements [bus.Bus].
func (b *Bus) Notify(f func(), keys ...bus.Key) *bus.Watch { return b.local.Notify(f, keys...) }

// take gives the messages that wait to be sent.
func (b *Bus) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := make([]bus.Key, 0, len(b.queued))
	for key := range b.queued {
		keys = append(keys, key)
	}
	all := b.all
	clear(b.queued)
	b.all = false
	return encode(b.name, keys, all)
}

// Close ends the goroutines. Watches go on to be told of this node's hints.
func (b *Bus) Close() {
	b.end()
	b.finished.Wait()
}

// look asks the Follower again and again, more often while this node hears nothing.
func (b *Bus) look(ctx context.Context) {
	each := b.options.LookDeafEach
	complained := false
	timer := time.NewTimer(each)
	defer timer.Stop()
	for {
		select {
		case hears := <-b.heard:
			if each = b.options.LookDeafEach; hears {
				each = b.options.LookEach
			}
			timer.Reset(each)
		case <-timer.C:
			keys, all, err := b.options.Follower.Look(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil && !complained {
				b.log.Warn("the log cannot be looked at; it will be tried again", "error", err)
			}
			complained = err != nil
			b.pass(keys, all)
			timer.Reset(each)
		case <-ctx.Done():
			return
		}
	}
}

// pass tells this node's watchers what came from elsewhere.
func (b *Bus) pass(keys []bus.Key, all bool) {
	if all {
		b.local.HintAll()
		return
	}
	b.local.Hint(keys...)
}
