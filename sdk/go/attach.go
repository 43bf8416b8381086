package wakeshift

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// AttachOptions configure [Wakeshift.Attach] and [Wakeshift.Handler]. The zero
// value is usable.
type AttachOptions struct {
	// Identify says who is behind a request; nil means nobody is known. Without a
	// user there are no personal events, and clients cannot subscribe natively. A
	// panic fails the request.
	Identify func(context.Context, *Request) Identity
	// NoEventTools leaves out the tools subscribe_events, unsubscribe_events and
	// list_subscriptions. Agents have them in an app with public events, unless
	// their client subscribes by MCP Events. A tool of the app with one of these
	// names takes its place.
	NoEventTools bool
	// MaxBodyBytes limits the body of a request to [Wakeshift.Handler]: 0 means
	// 4 MiB, a negative number no limit.
	MaxBodyBytes int64
	// Dialect is the form of MCP Events that clients are answered in; empty lets
	// the core choose by the client, which is right unless all clients are of one
	// kind that it does not know.
	Dialect Dialect
}

// A Dialect is a form of MCP Events: which numbers its errors have, and some
// details of webhooks. The core knows what belongs to each.
type Dialect string

// The dialects in use.
const (
	// DialectDraft is that of the extension's draft.
	DialectDraft Dialect = "draft"
	// DialectChatGPT is that of ChatGPT and other early clients.
	DialectChatGPT Dialect = "chatgpt"
	// DialectFinal is that of the finished extension.
	DialectFinal Dialect = "final"
)

// A Request is what [AttachOptions].Identify has to go by.
type Request struct {
	// Header is the HTTP request's; nil, and safe to read, on other transports.
	Header http.Header
	// Token is the verified bearer token of the MCP SDK's auth package; nil
	// without one.
	Token *auth.TokenInfo
	// Client is the MCP client's name as it gave it, which proves nothing. It may
	// be empty.
	Client string
}

// An Identity is who is behind a request.
type Identity struct {
	// User is the app's own id for the person, at most 256 characters; empty when
	// nobody is signed in.
	User string
}

// An Attached is an MCP server with an app attached. See [AddTool].
type Attached struct {
	wake   *Wakeshift
	server *mcp.Server
	opts   AttachOptions
}

// Attach connects an app to an MCP server: the server then advertises MCP Events,
// answers events/list, events/poll, events/stream, events/subscribe and
// events/unsubscribe, and results of tools added with [AddTool] carry what the
// core has for the agent. Attach one app to a server, once; it panics if server
// is nil or the dialect unknown. It is cheap and keeps nothing of the server, so
// that a server may be made for every request.
//
// Over HTTP wrap the MCP handler with [Wakeshift.Handler], over other transports
// the transport with [Wakeshift.Transport]. What does not work without is said
// there.
func (w *Wakeshift) Attach(server *mcp.Server, opts AttachOptions) *Attached {
	if server == nil {
		panic("wakeshift: Attach needs a server")
	}
	switch opts.Dialect {
	case "", DialectDraft, DialectChatGPT, DialectFinal:
	default:
		panic("wakeshift: Attach does not know the dialect it was given")
	}
	a := &Attached{wake: w, server: server, opts: opts}
	server.AddReceivingMiddleware(a.receive)
	server.AddSendingMiddleware(a.send)
	a.addMethods()
	return a
}

// receive is the middleware through which all requests of the server pass.
func (a *Attached) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case "initialize", "server/discover":
			return advertise(a.announceTools(next(ctx, method, req)))
		case "tools/list":
			return a.listTools(ctx, next, req)
		case "tools/call":
			return a.callTool(ctx, next, req)
		case methodListen:
			return a.listen(ctx, next, req)
		case methodList, methodPoll, methodStream, methodSubscribe, methodUnsubscribe:
			// A custom method's handler is not given the request's extra part.
			ctx = context.WithValue(ctx, extraKey{}, req.GetExtra())
		}
		return next(ctx, method, req)
	}
}

type extraKey struct{}

// identify asks the app who is behind a request.
func (a *Attached) identify(ctx context.Context, extra *mcp.RequestExtra, client string) (Identity, error) {
	if a.opts.Identify == nil {
		return Identity{}, nil
	}
	request := &Request{Client: client}
	if extra != nil {
		request.Header, request.Token = extra.Header, extra.TokenInfo
	}
	var who Identity
	err := guard("Identify", func() error {
		who = a.opts.Identify(ctx, request)
		return nil
	})
	if err != nil {
		hookFailed(a.wake.log, "Identify failed, so the request is refused", err)
		return Identity{}, internalError()
	}
	return who, nil
}
