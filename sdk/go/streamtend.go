package wakeshift

import (
	"context"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// outagePatience is how long the core may be gone before clients are told.
	outagePatience = 5 * time.Second
	// outageHeartbeat is the time between heartbeats while it is: they keep
	// clients from giving up a stream that will go on.
	outageHeartbeat = 20 * time.Second
	pingEvery       = 30 * time.Second
	pingPatience    = 15 * time.Second
	// recheckEvery is how often Authorize is asked again while a stream is open.
	recheckEvery = 5 * time.Minute
	tendEvery    = time.Second
)

// tend does what has to be done from time to time, for all streams with one
// timer, until the context ends.
func (s *streams) tend(ctx context.Context) {
	ticker := time.NewTicker(tendEvery)
	defer ticker.Stop()
	now := time.Now()
	pinged, rechecked, beaten := now, now, now
	for {
		select {
		case <-ctx.Done():
			return
		case now = <-ticker.C:
		}
		if s.hangUpIfIdle(now) {
			return
		}
		conn, since := s.connection()
		switch {
		case conn == nil && now.Sub(since) < outagePatience:
			beaten = time.Time{}
		case conn == nil && now.Sub(beaten) >= outageHeartbeat:
			beaten = now
			s.outage()
		case conn != nil:
			s.reopen()
		}
		if conn != nil && now.Sub(pinged) >= pingEvery {
			pinged = now
			s.work.Go(func() { ping(ctx, conn) })
		}
		if now.Sub(rechecked) >= recheckEvery && s.rechecking.CompareAndSwap(false, true) {
			rechecked = now
			s.work.Go(func() {
				defer s.rechecking.Store(false)
				s.recheck(ctx)
			})
		}
	}
}

func (s *streams) connection() (*websocket.Conn, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn, s.since
}

// hangUpIfIdle closes the connection when there were no streams for a while.
func (s *streams) hangUpIfIdle(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle.IsZero() || now.Sub(s.idle) < idlePatience {
		return false
	}
	s.hangUp()
	s.hangUp, s.conn = nil, nil
	return true
}

// ping gives up a connection over which nothing comes back.
func ping(ctx context.Context, conn *websocket.Conn) {
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	if conn.Ping(ctx) != nil {
		conn.CloseNow()
	}
}

// outage tells the clients once that the core cannot be reached, and from then on
// that their streams live.
func (s *streams) outage() {
	trouble, err := encodeJSON(map[string]any{"error": &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
		Message: "Events are delayed: the server cannot reach its log of events. The stream goes on"}})
	if err != nil {
		return // it is a constant
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.open {
		switch {
		case !st.admitted || st.ended || st.behind:
		case !st.troubled:
			st.troubled = st.push(notifyError, trouble)
		default:
			st.push(notifyHeartbeat, st.heartbeat()) // if it is full, there is enough to read
		}
	}
}

// reopen opens streams that the core has refused for a reason that may pass.
func (s *streams) reopen() {
	s.mu.Lock()
	var opens []func()
	for st := range s.open {
		if st.admitted && st.number == 0 {
			opens = append(opens, s.opening(st))
		}
	}
	s.mu.Unlock()
	for _, open := range opens {
		open()
	}
}

// recheck asks Authorize again for every open stream, one after the other.
func (s *streams) recheck(ctx context.Context) {
	s.mu.Lock()
	asked := make([]*stream, 0, len(s.open))
	for st := range s.open {
		if st.admitted && !st.refused && st.asked.event != nil && st.asked.event.authorize != nil {
			asked = append(asked, st)
		}
	}
	s.mu.Unlock()
	for _, st := range asked {
		if ctx.Err() != nil {
			return
		}
		if !st.asked.event.allows(ctx, st.asked.who, st.asked.arguments) && ctx.Err() == nil {
			s.refuse(st)
		}
	}
}

// refuse tells the core that the app does not allow a stream any more. What the
// client is told of that is the core's to say.
func (s *streams) refuse(st *stream) {
	s.mu.Lock()
	st.refused = true
	conn, number := s.conn, st.number
	s.mu.Unlock()
	if conn != nil && number != 0 {
		s.write(conn, numberFrame{Type: "refuse", Stream: number})
	}
}
