package wakeshift

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// subscriptionKey names, in _meta, the request that a notification belongs to.
const subscriptionKey = metaPrefix + "subscriptionId"

const (
	// maxQueued and maxQueuedBytes bound what waits for one client.
	maxQueued      = 256
	maxQueuedBytes = 1 << 20
)

// A notification is one of MCP Events, but for the subscription's id in _meta.
type notification struct {
	method string
	params json.RawMessage
}

// A stream is an events/stream request of a client: what the core says of it
// waits here until it is written. A client that does not keep up has its stream
// put down at the core, and taken up again where it was once everything that
// waits is written, so that a slow client holds up nobody and needs no memory.
type stream struct {
	all   *streams
	asked *asked
	ready chan struct{} // closed when it is admitted or refused
	wake  chan struct{} // has room for one: something is new for next

	// The rest is guarded by all.mu.

	number   int64 // 0: not open at the core
	admitted bool
	refusal  *jsonrpc.Error // in place of the admission
	refused  bool           // the app's Authorize says no since it was opened
	cursor   *string        // where to go on; nil before there is one
	queue    []notification
	queued   int  // bytes in queue
	behind   bool // put down until the queue is empty
	troubled bool // the client was told that the core cannot be reached
	ended    bool // nothing is added to the queue any more
}

// next waits for the next notification. It returns io.EOF when the stream has
// ended, and the context's error when that has.
func (st *stream) next(ctx context.Context) (notification, error) {
	for {
		n, ok, err := st.pop()
		if ok || err != nil {
			return n, err
		}
		select {
		case <-st.wake:
		case <-ctx.Done():
			return notification{}, ctx.Err()
		}
	}
}

// pop takes the next notification from the queue, if there is one. When a client
// that was behind has got everything, its stream is opened again.
func (st *stream) pop() (notification, bool, error) {
	st.all.mu.Lock()
	if len(st.queue) == 0 {
		caughtUp := st.behind && !st.ended
		var open func()
		if caughtUp {
			st.behind = false
			open = st.all.opening(st)
		}
		ended := st.ended
		st.all.mu.Unlock()
		if open != nil {
			open()
		}
		if ended {
			return notification{}, false, io.EOF
		}
		return notification{}, false, nil
	}
	n := st.queue[0]
	st.queue[0] = notification{}
	st.queue = st.queue[1:]
	st.queued -= len(n.params)
	if len(st.queue) == 0 {
		st.queue = nil
	}
	st.all.mu.Unlock()
	return n, true, nil
}

// push adds to the queue; false means that it is full. all.mu must be held.
func (st *stream) push(method string, params json.RawMessage) bool {
	if len(st.queue) >= maxQueued || len(st.queue) > 0 && st.queued+len(params) > maxQueuedBytes {
		return false
	}
	st.queue = append(st.queue, notification{method, params})
	st.queued += len(params)
	st.signal()
	return true
}

// signal wakes next. all.mu must be held.
func (st *stream) signal() {
	select {
	case st.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// admit says that the stream was admitted, or why not. all.mu must be held.
func (st *stream) admit(refusal *jsonrpc.Error) {
	st.admitted, st.refusal = refusal == nil, refusal
	close(st.ready)
}

// heartbeat is a heartbeat's params with the cursor the stream is at. all.mu must
// be held.
func (st *stream) heartbeat() json.RawMessage {
	params, _ := encodeJSON(map[string]any{"cursor": st.cursor}) // a string or null
	return params
}

// params are those to open the stream with: the client's own, or those to go on
// from where it is.
func (st *stream) params() json.RawMessage {
	if st.cursor == nil {
		return st.asked.body.Params
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(st.asked.body.Params, &members) != nil {
		return st.asked.body.Params
	}
	members["cursor"], _ = encodeJSON(*st.cursor)
	delete(members, "maxAgeMs") // it bounded how far back to begin, not how long an outage may last
	params, err := encodeJSON(members)
	if err != nil {
		return st.asked.body.Params
	}
	return params
}

// withSubscription adds the id of the stream's request to params, which are an
// object.
func withSubscription(params, id json.RawMessage) (json.RawMessage, error) {
	if bytes.Contains(params, []byte(`"_meta"`)) {
		return mergeSubscription(params, id)
	}
	open := bytes.IndexByte(params, '{')
	if open < 0 {
		return mergeSubscription(params, id)
	}
	rest := bytes.TrimLeft(params[open+1:], " \t\r\n")
	out := make([]byte, 0, len(rest)+len(id)+len(subscriptionKey)+16)
	out = append(out, `{"_meta":{"`+subscriptionKey+`":`...)
	out = append(out, id...)
	out = append(out, '}')
	if len(rest) > 0 && rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, rest...), nil
}

// mergeSubscription adds to the _meta there may be.
func mergeSubscription(params, id json.RawMessage) (json.RawMessage, error) {
	var members, meta map[string]json.RawMessage
	if len(params) > 0 {
		if err := json.Unmarshal(params, &members); err != nil {
			return nil, err
		}
	}
	if raw, ok := members["_meta"]; ok {
		if err := json.Unmarshal(raw, &meta); err != nil {
			return nil, err
		}
	}
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	meta[subscriptionKey] = id
	raw, err := encodeJSON(meta)
	if err != nil {
		return nil, err
	}
	members["_meta"] = raw
	return encodeJSON(members)
}
