package monitor

import (
	"context"
	"net"
)

// A connection asks the operating system whether the other end has taken what was sent. nil knows nothing.
type connection struct{ net.Conn }

type connKey struct{}

// ConnContext is an [http.Server.ConnContext] that lets streams tell a peer that vanished from one that is quiet: without it,
// or behind a proxy, a line counts as delivered once the connection has outlived it for a moment.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, &connection{c})
}

func connOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connKey{}).(*connection)
	return c
}

// empty reports whether everything sent has been taken by the other end's system, as far as can be known.
func (c *connection) empty() bool {
	if c == nil {
		return true
	}
	inner := c.Conn
	for {
		switch conn := inner.(type) {
		case *net.TCPConn:
			queued, ok := unacknowledged(conn)
			return !ok || queued == 0
		case interface{ NetConn() net.Conn }: // TLS, and whatever else is put around
			inner = conn.NetConn()
		default:
			return true
		}
	}
}
