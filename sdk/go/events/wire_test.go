package events_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rouse-dev/rouse/sdk/go/events"
)

// Over one connection an MCP client and an events client do not disturb each other.
func TestOverAWire(t *testing.T) {
	for _, mode := range []events.Mode{events.Poll, events.Push} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, "poll", "push")
				ctx, cancel := context.WithCancel(t.Context())
				client, server := mcp.NewInMemoryTransports()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					f.serveWire(ctx, server)
				}()
				wire := events.Wrap(client)
				session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, wire, nil)
				if err != nil {
					t.Fatal(err)
				}
				c, err := events.Over(wire, nil)
				if err != nil {
					t.Fatal(err)
				}
				s := subscribe(t, c, &events.SubscribeOptions{Mode: mode})
				f.emit(2)
				isEqual(t, take(t, s, 2), "1", "2")
				c.Close()
				session.Close()
				cancel()
				<-ended
			})
		})
	}
}
