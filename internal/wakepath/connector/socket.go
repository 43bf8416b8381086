package connector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/coder/websocket"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/wake"
)

const (
	// window is how many frames may be unacknowledged at a time.
	window = 32
	// pingEvery finds out that the other end is gone, and keeps proxies from thinking so.
	pingEvery = 20 * time.Second
	// writeTimeout bounds a write, and the wait for a pong.
	writeTimeout = 30 * time.Second
	// maxFrame bounds what a connector may send: acknowledgements are small.
	maxFrame = 16 << 10
)

// Superseded is the close code of a connection whose place a newer one took.
const Superseded websocket.StatusCode = 4001

// A frame is what the core sends.
type frame struct {
	Type     wake.Kind `json:"type"`
	Delivery string    `json:"delivery_id"`
	Event    event     `json:"event"`
}

type event struct {
	Subject string          `json:"subject"`
	Data    json.RawMessage `json:"data"`
	Name    string          `json:"name,omitempty"`
	At      time.Time       `json:"at"`
}

// A reply is what a connector sends.
type reply struct {
	Type     string `json:"type"`
	Delivery string `json:"delivery_id"`
}

// A socket is one connected connector.
type socket struct {
	handler *handler
	conn    *websocket.Conn
	inbox   *core.Inbox
	acks    chan string
	out     []outstanding // sent, in order
}

type outstanding struct {
	id      string
	receipt core.Receipt
	acked   bool
}

func newSocket(h *handler, conn *websocket.Conn, inbox *core.Inbox) *socket {
	conn.SetReadLimit(maxFrame)
	return &socket{handler: h, conn: conn, inbox: inbox, acks: make(chan string, window)}
}

// run sends what is owed and takes acknowledgements until the connection ends, and closes it.
func (s *socket) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer cancel()
		s.listen(ctx)
	}()
	code, reason := s.serve(ctx)
	// The close frame needs the connection, which ends with the context.
	_ = s.conn.Close(code, reason)
	cancel()
	<-gone
}

func (s *socket) serve(ctx context.Context) (websocket.StatusCode, string) {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		if err := s.send(ctx); err != nil {
			return s.trouble(ctx, err)
		}
		if s.inbox.Finished() && len(s.out) == 0 {
			return websocket.StatusNormalClosure, "nothing is left to wait for"
		}
		select {
		case <-ctx.Done():
			return websocket.StatusGoingAway, ""
		case <-s.handler.stopping:
			return websocket.StatusServiceRestart, "the core restarts"
		case <-s.inbox.Superseded():
			return Superseded, "a newer connection took this one's place"
		case id := <-s.acks:
			if err := s.acknowledge(ctx, id); err != nil {
				return s.trouble(ctx, err)
			}
		case <-s.inbox.Changed():
		case <-ping.C:
			if err := s.ping(ctx); err != nil {
				return s.trouble(ctx, err)
			}
		}
	}
}

// errLost means that the connection failed, as connections do.
var errLost = errors.New("the connection is lost")

func (s *socket) trouble(ctx context.Context, err error) (websocket.StatusCode, string) {
	if ctx.Err() == nil && !errors.Is(err, errLost) {
		s.handler.log.ErrorContext(ctx, "a connector's socket failed; it comes back", "error", err)
	}
	return websocket.StatusInternalError, "the core failed"
}

// send sends what is owed, as far as the window allows.
func (s *socket) send(ctx context.Context) error {
	room := window - len(s.out)
	if room <= 0 {
		return nil
	}
	messages, err := s.inbox.Read(ctx, room)
	if errors.Is(err, core.ErrGone) {
		s.out = nil // forgotten: there is nothing to acknowledge
		return nil
	}
	if err != nil {
		return err
	}
	for _, m := range messages {
		if err := s.write(ctx, m); err != nil {
			return err
		}
		// Only events are asked an acknowledgement of: what a program does not know it does not acknowledge.
		o := outstanding{id: m.ID, acked: m.Kind != wake.KindEvent}
		o.receipt.Add(m)
		s.out = append(s.out, o)
	}
	s.inbox.Sent(messages)
	return s.settle(ctx)
}

func (s *socket) write(ctx context.Context, m core.Message) error {
	text, err := json.Marshal(frame{m.Kind, m.ID, event{m.Text, m.Data, m.Event, m.At}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return lost(s.conn.Write(ctx, websocket.MessageText, text))
}

func (s *socket) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return lost(s.conn.Ping(ctx))
}

func lost(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errLost, err)
}

func (s *socket) acknowledge(ctx context.Context, id string) error {
	for i := range s.out {
		if s.out[i].id == id {
			s.out[i].acked = true
		}
	}
	return s.settle(ctx)
}

// settle records everything up to the first frame that is not acknowledged.
func (s *socket) settle(ctx context.Context) error {
	var receipt core.Receipt
	for len(s.out) > 0 && s.out[0].acked {
		receipt.AddAll(s.out[0].receipt)
		s.out = s.out[1:]
	}
	if receipt.Empty() {
		return nil
	}
	return s.inbox.Settle(ctx, receipt)
}

// listen reads acknowledgements until the connection ends. What makes no sense does no harm.
func (s *socket) listen(ctx context.Context) {
	for {
		kind, text, err := s.conn.Read(ctx)
		if err != nil {
			return
		}
		var r reply
		if kind != websocket.MessageText || json.Unmarshal(text, &r) != nil || r.Type != "ack" || r.Delivery == "" {
			continue
		}
		select {
		case s.acks <- r.Delivery:
		case <-ctx.Done():
			return
		}
	}
}
