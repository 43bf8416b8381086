package wakeshift

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// maxFrame is far above the largest event there can be.
	maxFrame = 4 << 20
	// maxOpening bounds what opens a stream, in bytes: the core takes 256 KiB, and
	// a cursor may be added to what the client sent.
	maxOpening = 250 << 10
	// writePatience bounds the writing of one frame to the core, and dialPatience
	// the making of the connection.
	writePatience = 15 * time.Second
	dialPatience  = 10 * time.Second
	// maxReconnect is the longest wait between two attempts.
	maxReconnect = 15 * time.Second
)

// An openFrame opens a stream at the core (docs/wire.md §4).
type openFrame struct {
	Type   string `json:"type"`
	Stream int64  `json:"stream"`
	nativeCall
}

// A numberFrame says something else of a stream.
type numberFrame struct {
	Type   string `json:"type"`
	Stream int64  `json:"stream"`
}

// A coreFrame is what the core says of a stream.
type coreFrame struct {
	Stream int64           `json:"stream"`
	Error  *jsonrpc.Error  `json:"error"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	End    bool            `json:"end"`
}

// keepConnected makes the connection to the core, again whenever it breaks, until
// the context ends.
func (s *streams) keepConnected(ctx context.Context) {
	logged := false
	for failures := 0; ctx.Err() == nil; failures++ {
		conn, err := s.dial(ctx)
		switch {
		case err == nil && s.serve(ctx, conn):
			failures, logged = 0, false
		case err != nil && !logged && ctx.Err() == nil:
			s.log.Warn("streams cannot reach the core, which is tried again", "error", err)
			logged = true
		}
		sleep(ctx, jitter(reconnectPause(failures)))
	}
}

// reconnectPause is the wait after so many failures in a row: the first is short,
// since a core that restarts is back at once.
func reconnectPause(failures int) time.Duration {
	return min(250*time.Millisecond<<min(failures, 10), maxReconnect)
}

func (s *streams) dial(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	assertion, err := s.core.signer.assertion(s.core.base, time.Now())
	if err != nil {
		return nil, err
	}
	conn, response, err := websocket.Dial(ctx, s.core.base+"/api/apps/v1/events/streams", &websocket.DialOptions{
		HTTPClient: s.core.http,
		HTTPHeader: http.Header{"Authorization": {"Bearer " + assertion}},
	})
	if err != nil && response != nil && response.StatusCode != http.StatusSwitchingProtocols {
		return nil, fmt.Errorf("wakeshift: the core answered %d", response.StatusCode)
	}
	if err != nil {
		return nil, s.core.unreachable(err)
	}
	conn.SetReadLimit(maxFrame)
	return conn, nil
}

// serve opens all streams on a new connection and takes what the core says, until
// the connection ends. It reports whether the core has said anything.
func (s *streams) serve(ctx context.Context, conn *websocket.Conn) (heard bool) {
	defer conn.CloseNow()
	s.mu.Lock()
	if ctx.Err() != nil { // it was hung up while being made, and there may be another
		s.mu.Unlock()
		return false
	}
	s.conn, s.since = conn, time.Now()
	opens := make([]func(), 0, len(s.open))
	for st := range s.open {
		opens = append(opens, s.opening(st))
	}
	s.mu.Unlock()
	// Beside the reading, without which the core would not read on.
	s.work.Go(func() {
		for _, open := range opens {
			open()
		}
	})
	defer s.lost(conn)
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			return heard
		}
		heard = true
		s.take(data)
	}
}

// lost notes that the connection is gone, and that no stream is open at the core.
func (s *streams) lost(conn *websocket.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != conn {
		return // it was hung up, and there may be another
	}
	s.conn, s.since = nil, time.Now()
	for _, st := range s.numbered {
		st.number = 0
	}
	clear(s.numbered)
}

// write sends a frame. When that fails the connection is given up, which opens
// every stream again. mu must not be held.
func (s *streams) write(conn *websocket.Conn, frame any) {
	data, err := encodeJSON(frame)
	if err != nil {
		return // it came from JSON
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, writePatience)
	defer cancel()
	if conn.Write(ctx, websocket.MessageText, data) != nil {
		conn.CloseNow()
	}
}
