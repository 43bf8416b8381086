package wakeshift

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Transport wraps the transport of an attached server that does not serve HTTP,
// such as [mcp.StdioTransport]; over HTTP there is [Wakeshift.Handler]. With it
// clients are told when the list of events changes (eventsListChanged of
// subscriptions/listen), and a stream they cancel ends without an answer. Without
// it they are not told, which the server says, and the request of a cancelled
// stream is answered.
func (w *Wakeshift) Transport(t mcp.Transport) mcp.Transport { return &eventsTransport{t} }

type eventsTransport struct{ inner mcp.Transport }

// Connect connects the transport inside.
func (t *eventsTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &eventsConnection{Connection: conn, streams: map[jsonrpc.ID]bool{}}, nil
}

// SupportsProtocolVersion asks the transport inside; one that does not say
// supports all.
func (t *eventsTransport) SupportsProtocolVersion(version string) bool {
	inner, ok := t.inner.(mcp.ProtocolVersionSupporter)
	return !ok || inner.SupportsProtocolVersion(version)
}

// An eventsConnection changes what passes between a client and a server.
type eventsConnection struct {
	mcp.Connection

	mu      sync.Mutex
	streams map[jsonrpc.ID]bool // requests for a stream not answered yet; true: cancelled
}

// Read reads the next message of the client.
func (c *eventsConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	request, ok := message.(*jsonrpc.Request)
	if err != nil || !ok {
		return message, err
	}
	switch request.Method {
	case methodListen:
		if params, ok := markListen(request.Params); ok {
			request.Params = params
		}
	case methodStream:
		if request.IsCall() {
			c.mu.Lock()
			c.streams[request.ID] = false
			c.mu.Unlock()
		}
	case methodCancelled:
		c.cancelled(request.Params)
	}
	return request, nil
}

const methodCancelled = "notifications/cancelled"

func (c *eventsConnection) cancelled(params json.RawMessage) {
	var p struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	id, err := jsonrpc.MakeID(p.RequestID)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.streams[id]; ok {
		c.streams[id] = true
	}
}

// Write writes a message to the client, unless it is the answer to a stream the
// client has cancelled.
func (c *eventsConnection) Write(ctx context.Context, message jsonrpc.Message) error {
	if response, ok := message.(*jsonrpc.Response); ok {
		c.mu.Lock()
		cancelled := c.streams[response.ID]
		delete(c.streams, response.ID)
		c.mu.Unlock()
		if cancelled {
			return nil
		}
	}
	return c.Connection.Write(ctx, message)
}

var _ mcp.ProtocolVersionSupporter = (*eventsTransport)(nil)
