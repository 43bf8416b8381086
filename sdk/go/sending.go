package wakeshift

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The notifications of MCP Events that a server sends.
const (
	notifyPrefix      = "notifications/events/"
	notifyActive      = notifyPrefix + "active"
	notifyEvent       = notifyPrefix + "event"
	notifyHeartbeat   = notifyPrefix + "heartbeat"
	notifyError       = notifyPrefix + "error"
	notifyTerminated  = notifyPrefix + "terminated"
	notifyListChanged = notifyPrefix + "list_changed"
)

// A sender does two things the MCP SDK has no API for: it sends notifications of
// any method to the client of a server session, and finds the JSON-RPC id of the
// request that is being handled. Both use innermost handlers of the SDK, which
// it shows to middleware, on sessions made for that and closed since.
// TestSenderContract fails when the SDK no longer works like that.
type sender struct {
	send    mcp.MethodHandler  // of a client that knows our methods
	client  *mcp.ClientSession // its session
	receive mcp.MethodHandler  // of a server
	server  *mcp.ServerSession // its session
}

// theSender is made once for the process; it holds no connection and no
// goroutine.
var theSender = sync.OnceValues(newSender)

func newSender() (*sender, error) {
	s := &sender{}
	who := &mcp.Implementation{Name: "wakeshift"}
	server := mcp.NewServer(who, nil)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		s.receive = next
		return next
	})
	server.AddSendingMiddleware(func(mcp.MethodHandler) mcp.MethodHandler {
		return func(context.Context, string, mcp.Request) (mcp.Result, error) { return nil, nil }
	})
	// Without this option the innermost handler would not be the first one.
	client := mcp.NewClient(who, &mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}})
	client.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		s.send = next
		return next
	})
	for _, method := range []string{
		notifyActive, notifyEvent, notifyHeartbeat, notifyError, notifyTerminated, notifyListChanged,
	} {
		if err := mcp.AddSendingCustomMethod[*rawParams, *rawResult](client, method); err != nil {
			return nil, fmt.Errorf("wakeshift: %w", err)
		}
	}
	ctx := context.Background()
	theirs, ours := mcp.NewInMemoryTransports()
	var err error
	if s.server, err = server.Connect(ctx, theirs, nil); err != nil {
		return nil, fmt.Errorf("wakeshift: %w", err)
	}
	if s.client, err = client.Connect(ctx, ours, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("wakeshift: %w", err), s.server.Close())
	}
	if err := errors.Join(s.client.Close(), s.server.Wait()); err != nil {
		return nil, fmt.Errorf("wakeshift: %w", err)
	}
	return s, nil
}

// rawParams are params that are JSON already.
type rawParams struct {
	mcp.ParamsBase
	raw json.RawMessage
}

// MarshalJSON returns them as they are.
func (p *rawParams) MarshalJSON() ([]byte, error) { return p.raw, nil }

// An outgoing is a notification on its way. The SDK asks it for the session
// twice: to look up the method, which only a client's session can know, and for
// the connection.
type outgoing struct {
	*mcp.ServerRequest[*rawParams]
	lookup mcp.Session // nil once it was asked for
}

// GetSession returns the session to look the method up with, then the real one.
func (o *outgoing) GetSession() mcp.Session {
	if s := o.lookup; s != nil {
		o.lookup = nil
		return s
	}
	return o.Session
}

// notify sends a notification with the given params. With the context of a
// request's handler it belongs to that request, where the transport makes a
// difference.
func notify(ctx context.Context, session *mcp.ServerSession, method string, params json.RawMessage) error {
	s, err := theSender()
	if err != nil {
		return err
	}
	request := &mcp.ServerRequest[*rawParams]{Session: session, Params: &rawParams{raw: params}}
	_, err = s.send(ctx, method, &outgoing{ServerRequest: request, lookup: s.client})
	return err
}

// requestID returns the JSON-RPC id of the request whose handler has the given
// context, as JSON. It has subscriptions/listen served to nothing, by a session
// of nobody, since the answer names its request.
func requestID(ctx context.Context) (json.RawMessage, error) {
	s, err := theSender()
	if err != nil {
		return nil, err
	}
	res, err := s.receive(ctx, methodListen, &mcp.SubscriptionsListenRequest{
		Session: s.server,
		Params:  &mcp.SubscriptionsListenParams{Notifications: &mcp.NotificationSubscriptions{}},
	})
	if err != nil {
		return nil, fmt.Errorf("wakeshift: finding the id of a request: %w", err)
	}
	id, ok := res.GetMeta()[subscriptionKey]
	if !ok {
		return nil, errors.New("wakeshift: a request has no id")
	}
	return json.Marshal(id)
}
