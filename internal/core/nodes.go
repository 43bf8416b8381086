package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/store"
)

const (
	// attendEvery is how often a node says that it is there, and looks how its connections stand; a hint has it look at once.
	// It is well below the time in which a line on a stream counts as delivered, so that a stream knows by then when there is
	// a newer one.
	attendEvery = time.Second
	// attendLease is how long that holds: for so long a node that was killed still counts as connected.
	attendLease = 10 * time.Second
	// leaveTime bounds a node's farewell.
	leaveTime = 2 * time.Second
)

// nodes is what this node tells the others that use the same database, and learns from them: which conversations are connected
// where, and so which connection is a conversation's newest.
//
// It writes when a connection comes or goes, all those at once that came or went meanwhile, and never when something is emitted.
type nodes struct {
	store    store.Shared
	bus      bus.Bus
	presence *presence
	log      *slog.Logger
	id       string
	wake     chan struct{}
	ended    chan struct{}

	mu    sync.Mutex
	queue []opening
	gone  []string // ids of connections that were closed
}

// An opening is a connection of which the others are to be told.
type opening struct {
	conn *Connection
	done chan error
}

// errEnded is what those hear who connect while the core closes.
var errEnded = errors.New("the core is closing")

// joinNodes makes the node known.
func joinNodes(ctx context.Context, s store.Shared, b bus.Bus, p *presence, log *slog.Logger) (*nodes, error) {
	n := &nodes{store: s, bus: b, presence: p, log: log, id: credential.NewID(), wake: make(chan struct{}, 1), ended: make(chan struct{})}
	if _, err := s.Attend(ctx, n.id, attendLease); err != nil {
		return nil, fmt.Errorf("joining the other nodes: %w", err)
	}
	return n, nil
}

// topic is what a node watches to learn that its connections stand otherwise. No app has it.
func nodeTopic(id string) bus.Key { return bus.Key{Topic: "rouse/node/" + id} }

// opened tells the others of a connection and returns when it is done.
func (n *nodes) opened(ctx context.Context, conn *Connection) error {
	one := opening{conn, make(chan error, 1)}
	n.mu.Lock()
	n.queue = append(n.queue, one)
	n.mu.Unlock()
	n.hurry()
	select {
	case err := <-one.done:
		return err
	case <-n.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// closed has the others told, soon, that a connection is gone.
func (n *nodes) closed(id string) {
	n.mu.Lock()
	n.gone = append(n.gone, id)
	n.mu.Unlock()
	n.hurry()
}

func (n *nodes) hurry() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// run tells and learns until ctx ends; then the node leaves.
func (n *nodes) run(ctx context.Context) {
	defer close(n.ended)
	watch := n.bus.Watch(nodeTopic(n.id))
	defer watch.Close()
	tick := time.NewTicker(attendEvery)
	defer tick.Stop()
	for failing := false; ; {
		var err error
		select {
		case <-ctx.Done():
			n.leave(context.WithoutCancel(ctx))
			return
		case <-n.wake:
			err = n.tell(ctx)
		case <-watch.C():
			err = n.attend(ctx)
		case <-tick.C:
			err = errors.Join(n.tell(ctx), n.attend(ctx))
		}
		if err != nil && ctx.Err() == nil && !failing {
			n.log.Error("the other nodes cannot be told which conversations are connected here; it is tried again each second", "error", err)
		}
		failing = err != nil
	}
}

// tell tells the others of the connections that came and went.
func (n *nodes) tell(ctx context.Context) error {
	n.mu.Lock()
	queue, gone := n.queue, n.gone
	n.queue, n.gone = nil, nil
	n.mu.Unlock()
	if len(queue)+len(gone) == 0 {
		return nil
	}
	opened := make([]store.Connection, len(queue))
	for i, one := range queue {
		opened[i] = one.conn.told()
	}
	err := n.connect(ctx, opened, gone)
	if err != nil {
		// Whoever waits closes its connection. What went is told again later.
		n.mu.Lock()
		n.gone = append(n.gone, gone...)
		n.mu.Unlock()
	}
	for _, one := range queue {
		one.done <- err
	}
	return err
}

func (n *nodes) connect(ctx context.Context, opened []store.Connection, gone []string) error {
	done, err := n.store.Connect(ctx, n.id, opened, gone)
	if err != nil {
		return err
	}
	n.presence.take(done.Ranks, false)
	for _, other := range done.Others {
		n.bus.Hint(nodeTopic(other))
	}
	return nil
}

// attend renews the node's lease and looks how its connections stand. When it was forgotten it tells of all of them again.
func (n *nodes) attend(ctx context.Context) error {
	is, err := n.store.Attend(ctx, n.id, attendLease)
	if err != nil {
		return err
	}
	if is.New {
		return n.connect(ctx, n.presence.list(), nil)
	}
	n.presence.take(is.Passed, true)
	return nil
}

func (n *nodes) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	if err := n.store.Leave(ctx, n.id); err != nil {
		n.log.Warn("the other nodes could not be told that this one ends: they find out by themselves", "error", err)
	}
}

// turn reports whether it is this node's turn to do what one node is enough for. Without others it always is.
func (c *Core) turn(ctx context.Context, what string, lease time.Duration) bool {
	if c.nodes == nil {
		return true
	}
	its, err := c.nodes.store.Turn(ctx, what, c.nodes.id, lease)
	if err != nil && ctx.Err() == nil {
		c.log.Error("the nodes could not settle whose turn it is; it is tried again", "what", what, "error", err)
	}
	return its && err == nil
}
