package core

import (
	"sync"

	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// The ways a conversation can be connected, as the app API names them.
const (
	ViaStream = "stream" // a Monitor
	ViaHooks  = "hooks"  // a connector
)

// presence knows which conversations are connected to this process now.
type presence struct {
	mu    sync.Mutex
	conns map[string][]*Connection // by conversation, newest last
}

// A Connection is one open stream or socket of a conversation.
type Connection struct {
	core         *Core
	conversation wake.Conversation
	via          string
	superseded   chan struct{}
}

// Superseded is closed when a newer connection takes this one's place.
func (n *Connection) Superseded() <-chan struct{} { return n.superseded }

// Close says that the connection is gone. It is safe to call twice.
func (n *Connection) Close() {
	p := &n.core.presence
	p.mu.Lock()
	defer p.mu.Unlock()
	conns := p.conns[n.conversation.ID]
	for i, other := range conns {
		if other == n {
			conns = append(conns[:i:i], conns[i+1:]...)
			n.core.feed.Put(trace.Entry{Kind: trace.Disconnected, App: n.conversation.App, Conversation: n.conversation.ID, Path: n.via})
		}
	}
	if len(conns) == 0 {
		delete(p.conns, n.conversation.ID)
		return
	}
	p.conns[n.conversation.ID] = conns
}

// connect records a connection. Of one conversation at most most stay open: the oldest are superseded.
func (c *Core) connect(conversation wake.Conversation, via string, most int) *Connection {
	n := &Connection{core: c, conversation: conversation, via: via, superseded: make(chan struct{})}
	p := &c.presence
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		p.conns = map[string][]*Connection{}
	}
	conns := append(p.conns[conversation.ID], n)
	for len(conns) > most {
		close(conns[0].superseded)
		conns = conns[1:]
	}
	p.conns[conversation.ID] = conns
	c.feed.Put(trace.Entry{Kind: trace.Connected, App: conversation.App, Conversation: conversation.ID, Harness: conversation.Harness, Path: via})
	return n
}

// via is how a conversation is connected now; empty when it is not.
func (p *presence) via(conversation string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	conns := p.conns[conversation]
	if len(conns) == 0 {
		return ""
	}
	return conns[len(conns)-1].via
}
