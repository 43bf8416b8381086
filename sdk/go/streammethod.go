package wakeshift

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stream answers events/stream. Behind [Wakeshift.Handler] it returns as soon as
// the stream is admitted, and the handler writes what comes; elsewhere it stays
// and sends notifications to the session.
func (a *Attached) stream(ctx context.Context, r *nativeRequest) (any, error) {
	asked, err := a.ask(ctx, r, true)
	if err != nil {
		return nil, err
	}
	if err := asked.fits(); err != nil {
		return nil, err
	}
	if err := a.wake.manifest.publish(ctx); err != nil {
		return nil, err
	}
	modern := isModern(r.ProtocolVersion())
	if r.Extra != nil {
		if out := a.wake.outlets.find(r.Extra.Header.Get(outletHeader)); out != nil {
			return a.detach(ctx, asked, out, modern)
		}
	}
	id, err := requestID(ctx)
	if err != nil {
		return nil, err
	}
	st, err := a.wake.streams.start(ctx, asked)
	if err != nil {
		return nil, err
	}
	defer st.close()
	return a.pump(ctx, r.Session, st, id)
}

// detach opens a stream and leaves it to the outlet.
func (a *Attached) detach(ctx context.Context, asked *asked, out *outlet, modern bool) (any, error) {
	st, err := a.wake.streams.start(ctx, asked)
	if err != nil {
		return nil, err
	}
	asked.streams(ctx)
	if !out.put(st, modern) {
		st.close() // the client is gone already
	}
	return struct{}{}, nil // nobody reads it
}

// pump sends a stream's notifications until it ends, or the client is gone.
func (a *Attached) pump(ctx context.Context, session *mcp.ServerSession, st *stream, id json.RawMessage) (any, error) {
	final := map[string]any{"_meta": map[string]json.RawMessage{subscriptionKey: id}}
	for first := true; ; first = false {
		n, err := st.next(ctx)
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return final, nil
		}
		params, err := withSubscription(n.params, id)
		if err != nil {
			return nil, err
		}
		if err := notify(ctx, session, n.method, params); err != nil {
			if first {
				return nil, cannotStream()
			}
			return final, nil // which nobody gets
		}
		if first {
			st.asked.streams(ctx)
		}
	}
}

// fits refuses a request that is larger than the core takes in one frame: all
// streams share the connection, which a frame beyond its limits would end.
func (a *asked) fits() error {
	data, err := encodeJSON(a.body)
	if err != nil {
		return err
	}
	if len(data) > maxOpening {
		return invalidParams(fmt.Sprintf("they are too large; a stream is opened with at most %d KiB", maxOpening>>10))
	}
	return nil
}

// streams calls OnSubscribe for a stream that has become active.
func (a *asked) streams(ctx context.Context) {
	if a.event != nil {
		a.event.subscribed(ctx, a.who, "", a.arguments)
	}
}

// cannotStream refuses a stream on a transport that has only one answer for a
// request. What it is called in a client's dialect only the core knows, and it
// has admitted the stream.
func cannotStream() *jsonrpc.Error {
	return &jsonrpc.Error{
		Code:    jsonrpc.CodeInternalError,
		Message: "Unsupported: this server answers in JSON alone; to stream, its handler must be wrapped in Wakeshift.Handler",
		Data:    json.RawMessage(`{"feature":"deliveryMode","value":"push"}`),
	}
}
