// Package balancer passes TCP connections on to one of several nodes. It is as
// little as a cluster needs in front of it: in earnest nginx, HAProxy or a cloud's
// balancer takes its place, see docs/operating.md.
package balancer

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// dialTimeout is how long a node has to answer before the next one is asked.
const dialTimeout = 2 * time.Second

// A Balancer gives each connection to the next node in turn, or to the one after
// when that does not answer. It knows nothing of what goes through, and a client
// may come to another node each time. Make one with [New].
type Balancer struct {
	open sync.WaitGroup

	mu    sync.Mutex
	nodes []string // addresses
	next  int
	conns map[net.Conn]struct{} // all that are open, of both sides
}

// New makes a balancer of nodes with these addresses, host:port. An empty one is
// that of a node which is down.
func New(nodes ...string) *Balancer {
	return &Balancer{nodes: append([]string(nil), nodes...), conns: map[net.Conn]struct{}{}}
}

// Set says where a node, counted from 0, is from now on.
func (b *Balancer) Set(node int, address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes[node] = address
}

// Serve passes connections on until the context ends, and closes the listener
// and what is open then. It returns why it ended, nil if it was the context.
func (b *Balancer) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	defer b.open.Wait()
	defer b.closeAll()
	for {
		client, err := listener.Accept()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return errors.Join(err, listener.Close())
		}
		forget := b.keep(client)
		b.open.Go(func() {
			defer forget()
			b.pass(ctx, client)
		})
	}
}

// pass carries one connection until either end closes it.
func (b *Balancer) pass(ctx context.Context, client net.Conn) {
	node := b.dial(ctx)
	if node == nil {
		return
	}
	defer b.keep(node)()
	defer context.AfterFunc(ctx, func() { _ = client.Close() })()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, node}, {node, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], way[0]) // however one direction ends, the other ends too
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	both.Wait()
}

// dial connects to the next node that answers; nil when none does.
func (b *Balancer) dial(ctx context.Context) net.Conn {
	b.mu.Lock()
	order := append(append([]string(nil), b.nodes[b.next:]...), b.nodes[:b.next]...)
	b.next = (b.next + 1) % len(b.nodes)
	b.mu.Unlock()
	dialer := net.Dialer{Timeout: dialTimeout}
	for _, address := range order {
		if address == "" {
			continue
		}
		if conn, err := dialer.DialContext(ctx, "tcp", address); err == nil {
			return conn
		}
	}
	return nil
}

// keep has a connection closed with the balancer, and gives what closes it before.
func (b *Balancer) keep(conn net.Conn) (forget func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns[conn] = struct{}{}
	return func() {
		_ = conn.Close()
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.conns, conn)
	}
}

func (b *Balancer) closeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for conn := range b.conns {
		_ = conn.Close()
	}
}
