package core

import (
	"context"
	"sync"

	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// The ways a conversation can be connected, as the app API names them.
const (
	ViaStream  = "stream"  // a Monitor
	ViaHooks   = "hooks"   // a connector
	ViaPoll    = "poll"    // nothing: a client that polls is not connected
	ViaWebhook = "webhook" // a native subscriber's endpoint
)

// presence knows which conversations are connected to this node now.
type presence struct {
	mu    sync.Mutex
	conns map[string][]*Connection // by conversation, newest last
	byID  map[string]*Connection   // those and the ones that were superseded, until they are closed
}

// A Connection is one open stream or socket of a conversation at this node.
type Connection struct {
	core         *Core
	id           string
	conversation wake.Conversation
	via          string
	most         int // connections of the conversation that may be open
	superseded   chan struct{}

	// Guarded by presence.mu.

	place int64 // among the connections of all nodes; 0 where there is only one, or until it is known
	newer int   // connections of the conversation that are newer, at whatever node
}

// Superseded is closed when a newer connection takes this one's place.
func (n *Connection) Superseded() <-chan struct{} { return n.superseded }

// newest reports whether there is no newer connection of the conversation.
func (n *Connection) newest() bool {
	p := &n.core.presence
	p.mu.Lock()
	defer p.mu.Unlock()
	return n.newer == 0
}

// connect records a connection. Of one conversation at most most stay open: the oldest are superseded. When it returns the
// connection is known at every node.
func (c *Core) connect(ctx context.Context, conversation wake.Conversation, via string, most int) (*Connection, error) {
	n := &Connection{core: c, id: credential.NewID(), conversation: conversation, via: via, most: most, superseded: make(chan struct{})}
	c.presence.add(n, c.nodes == nil)
	if c.nodes != nil {
		if err := c.nodes.opened(ctx, n); err != nil {
			n.Close()
			return nil, err
		}
	}
	c.feed.Put(trace.Entry{Kind: trace.Connected, App: conversation.App, Conversation: conversation.ID, Harness: conversation.Harness, Path: via})
	return n, nil
}

// Close says that the connection is gone. It is safe to call twice.
func (n *Connection) Close() {
	c := n.core
	known, connected := c.presence.remove(n, c.nodes == nil)
	if !known {
		return
	}
	if c.nodes != nil {
		c.nodes.closed(n.id)
	}
	if connected {
		c.feed.Put(trace.Entry{Kind: trace.Disconnected, App: n.conversation.App, Conversation: n.conversation.ID, Path: n.via})
	}
}

// add adds a connection. alone says that there are no other nodes: the order of connections is decided here then.
func (p *presence) add(n *Connection, alone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		p.conns, p.byID = map[string][]*Connection{}, map[string]*Connection{}
	}
	p.byID[n.id] = n
	p.conns[n.conversation.ID] = append(p.conns[n.conversation.ID], n)
	if alone {
		p.count(n.conversation.ID)
	}
}

// remove removes a connection, and reports whether it was known and whether it was not superseded.
func (p *presence) remove(n *Connection, alone bool) (known, connected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, connected = p.byID[n.id] == n, p.drop(n)
	delete(p.byID, n.id)
	if alone {
		p.count(n.conversation.ID)
	}
	return known, connected
}

// drop takes a connection from those that are open, and reports whether it was one of them.
func (p *presence) drop(n *Connection) bool {
	conns := p.conns[n.conversation.ID]
	for i, other := range conns {
		if other != n {
			continue
		}
		if len(conns) == 1 {
			delete(p.conns, n.conversation.ID)
		} else {
			p.conns[n.conversation.ID] = append(conns[:i:i], conns[i+1:]...)
		}
		return true
	}
	return false
}

// count ranks the conversation's connections by what is connected here.
func (p *presence) count(conversation string) {
	conns := p.conns[conversation]
	for i, n := range conns {
		p.rank(n, len(conns)-1-i)
	}
}

// rank says how many connections of the same conversation are newer. One with too many is superseded.
func (p *presence) rank(n *Connection, newer int) {
	n.newer = newer
	if newer >= n.most && p.drop(n) {
		close(n.superseded)
	}
}

// take takes note of how connections stand among those of all nodes. all says that the others have no newer ones.
func (p *presence) take(ranks []store.Rank, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if all {
		for _, n := range p.byID {
			n.newer = 0
		}
	}
	for _, r := range ranks {
		if n := p.byID[r.ID]; n != nil {
			n.place = r.Place
			p.rank(n, r.Newer)
		}
	}
}

// list is every connection that is known, as other nodes are told of it.
func (p *presence) list() []store.Connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]store.Connection, 0, len(p.byID))
	for _, n := range p.byID {
		list = append(list, n.told())
	}
	return list
}

func (n *Connection) told() store.Connection {
	return store.Connection{ID: n.id, App: n.conversation.App, Conversation: n.conversation.ID, Path: n.via, Place: n.place}
}

// here is how a conversation is connected to this node now; empty when it is not.
func (p *presence) here(conversation string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	conns := p.conns[conversation]
	if len(conns) == 0 {
		return ""
	}
	return conns[len(conns)-1].via
}

// connected is how each conversation of an app that is connected to this node is.
func (p *presence) connected(app string) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	paths := map[string]string{}
	for id, conns := range p.conns {
		if newest := conns[len(conns)-1]; newest.conversation.App == app {
			paths[id] = newest.via
		}
	}
	return paths
}

// via is how each of the conversations is connected now, to whatever node. Those that are not are missing.
func (c *Core) via(ctx context.Context, conversations ...string) (map[string]string, error) {
	paths := make(map[string]string, len(conversations))
	var elsewhere []string
	for _, id := range conversations {
		if path := c.presence.here(id); path != "" {
			paths[id] = path
		} else {
			elsewhere = append(elsewhere, id)
		}
	}
	if c.nodes == nil || len(elsewhere) == 0 {
		return paths, nil
	}
	others, err := c.nodes.store.Paths(ctx, elsewhere)
	for id, path := range others {
		paths[id] = path
	}
	return paths, err
}
