package wakeshift

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	methodListen       = "subscriptions/listen"
	notifyAcknowledged = "notifications/subscriptions/acknowledged"
	// listenField is the filter of subscriptions/listen by which a client wants to
	// hear that the list of events has changed.
	listenField = "eventsListChanged"
	// listenKey says so in _meta. The MCP SDK drops filters it does not know, so
	// the field is copied there before it reads the request.
	listenKey = "wakeshift/eventsListChanged"
	// listChangedDelay puts changes that come together into one notification.
	listChangedDelay = 10 * time.Millisecond
)

// markListen copies the filter for events in the params of subscriptions/listen
// to where the MCP SDK leaves it alone; false if there is nothing to copy.
func markListen(params json.RawMessage) (json.RawMessage, bool) {
	var members, filter, meta map[string]json.RawMessage
	var wanted bool
	if json.Unmarshal(params, &members) != nil || json.Unmarshal(members["notifications"], &filter) != nil ||
		json.Unmarshal(filter[listenField], &wanted) != nil || !wanted {
		return nil, false
	}
	if raw, ok := members["_meta"]; ok && json.Unmarshal(raw, &meta) != nil {
		return nil, false // which the SDK refuses
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	meta[listenKey] = json.RawMessage("true")
	raw, err := encodeJSON(meta)
	if err != nil {
		return nil, false
	}
	members["_meta"] = raw
	if raw, err = encodeJSON(members); err != nil {
		return nil, false
	}
	return raw, true
}

// listens are the clients that listen for changes of the list of events.
type listens struct {
	mu     sync.Mutex
	open   map[*listen]struct{}
	timer  *time.Timer // runs while a change has not been told
	closed bool
}

// A listen is one subscriptions/listen request.
type listen struct {
	stop  context.CancelFunc
	news  chan struct{} // has room for one
	acked bool          // used by the request alone
}

type listenContextKey struct{}

func newListens() *listens { return &listens{open: map[*listen]struct{}{}} }

// changed has all who listen told, soon.
func (l *listens) changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == 0 {
		return
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(listChangedDelay, l.tell)
	} else {
		l.timer.Reset(listChangedDelay)
	}
}

func (l *listens) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.open {
		select {
		case one.news <- struct{}{}:
		default: // it has not told the last one yet
		}
	}
}

func (l *listens) add(one *listen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		one.stop()
		return
	}
	l.open[one] = struct{}{}
}

func (l *listens) remove(one *listen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, one)
}

// close ends the requests of all who listen.
func (l *listens) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	for one := range l.open {
		one.stop()
	}
}

// listen serves subscriptions/listen beside the SDK: that acknowledges it and
// sends what it knows of.
func (a *Attached) listen(ctx context.Context, next mcp.MethodHandler, req mcp.Request) (mcp.Result, error) {
	params, ok := req.GetParams().(*mcp.SubscriptionsListenParams)
	if !ok || params == nil || params.Meta[listenKey] != true {
		return next(ctx, methodListen, req)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	one := &listen{stop: stop, news: make(chan struct{}, 1)}
	defer a.wake.listens.remove(one)
	res, err := next(context.WithValue(ctx, listenContextKey{}, one), methodListen, req)
	if err == nil && one.acked {
		<-ctx.Done() // the SDK does not wait when nothing is asked of it
	}
	return res, err
}

// send is the middleware through which all that the server sends passes. It adds
// the filter for events to the acknowledgement of subscriptions/listen.
func (a *Attached) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		one, ok := ctx.Value(listenContextKey{}).(*listen)
		if !ok || method != notifyAcknowledged {
			return next(ctx, method, req)
		}
		session, isServer := req.GetSession().(*mcp.ServerSession)
		params, isAck := req.GetParams().(*mcp.SubscriptionsAcknowledgedParams)
		if !isServer || !isAck {
			return next(ctx, method, req)
		}
		id, err := encodeJSON(params.Meta[subscriptionKey])
		if err != nil {
			return nil, err
		}
		raw, err := acknowledgement(params)
		if err != nil {
			return nil, err
		}
		a.wake.listens.add(one) // before the client can count on it
		ack := &mcp.ServerRequest[*rawParams]{Session: session, Params: &rawParams{raw: raw}}
		if _, err := next(ctx, method, ack); err != nil {
			return nil, err
		}
		one.acked = true
		go one.run(ctx, session, id)
		return nil, nil
	}
}

// acknowledgement is the SDK's, with the filter for events.
func acknowledgement(params *mcp.SubscriptionsAcknowledgedParams) (json.RawMessage, error) {
	data, err := encodeJSON(params)
	if err != nil {
		return nil, err
	}
	var members, filter map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, fmt.Errorf("wakeshift: reading an acknowledgement: %w", err)
	}
	if err := json.Unmarshal(members["notifications"], &filter); err != nil {
		return nil, fmt.Errorf("wakeshift: reading an acknowledgement: %w", err)
	}
	filter[listenField] = json.RawMessage("true")
	if members["notifications"], err = encodeJSON(filter); err != nil {
		return nil, err
	}
	return encodeJSON(members)
}

// run tells one client until its request ends. Each has a goroutine, so that a
// client that does not read holds up no other.
func (one *listen) run(ctx context.Context, session *mcp.ServerSession, id json.RawMessage) {
	params, err := withSubscription(json.RawMessage("{}"), id)
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-one.news:
			err = notify(ctx, session, notifyListChanged, params)
		}
	}
	one.stop() // nothing reaches the client any more
}
