package wakeshift

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// connectPatience is how long a new stream waits for a connection to the core.
	connectPatience = 5 * time.Second
	// idlePatience is how long the connection is kept without a stream.
	idlePatience = 30 * time.Second
)

// streams are all open streams of a Wakeshift. They share one connection to the
// core, which is made for the first and closed some time after the last. When it
// breaks it is made again, and every stream opened again at its last cursor: the
// clients notice nothing, unless it takes long.
type streams struct {
	core *coreClient
	log  *slog.Logger
	ctx  context.Context
	stop context.CancelFunc

	mu       sync.Mutex
	open     map[*stream]struct{}
	numbered map[int64]*stream // those open at the core, on the present connection
	last     int64             // the last number that was given out
	conn     *websocket.Conn   // nil: there is none
	hangUp   context.CancelFunc
	since    time.Time // when conn was lost, or found impossible to make; when it was made
	idle     time.Time // since when there are no streams; zero: there are
	closed   bool

	writing    sync.Mutex  // held while a frame is written
	rechecking atomic.Bool // Authorize is being asked
	work       sync.WaitGroup
	detached   sync.WaitGroup // streams written after their requests' handlers have returned
}

func newStreams(core *coreClient, log *slog.Logger) *streams {
	ctx, stop := context.WithCancel(context.Background())
	return &streams{core: core, log: log, ctx: ctx, stop: stop,
		open: map[*stream]struct{}{}, numbered: map[int64]*stream{}}
}

// start opens a stream and waits until the core has admitted it. Its error is a
// JSON-RPC error of the core, ready to pass on, or says that there was no answer.
// The stream must be closed in the end.
func (s *streams) start(ctx context.Context, asked *asked) (*stream, error) {
	st := &stream{all: s, asked: asked, ready: make(chan struct{}), wake: make(chan struct{}, 1)}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	s.open[st] = struct{}{}
	s.idle = time.Time{}
	if s.hangUp == nil {
		s.connect()
	}
	open := s.opening(st)
	s.mu.Unlock()
	open()
	if err := s.await(ctx, st); err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

// await waits for the core's answer, for a shorter time while it cannot even be
// reached.
func (s *streams) await(ctx context.Context, st *stream) error {
	began := time.Now()
	timer := time.NewTimer(connectPatience)
	defer timer.Stop()
	for {
		select {
		case <-st.ready:
			s.mu.Lock()
			defer s.mu.Unlock()
			if st.refusal != nil {
				return st.refusal
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			s.mu.Lock()
			connected := s.conn != nil
			s.mu.Unlock()
			left := answerTimeout - time.Since(began)
			if !connected || left <= 0 {
				return &Error{Code: CodeUnreachable, Message: "no answer from the core to a stream"}
			}
			timer.Reset(left)
		}
	}
}

// connect begins to make the connection. mu must be held.
func (s *streams) connect() {
	ctx, cancel := context.WithCancel(s.ctx)
	s.hangUp, s.since = cancel, time.Now()
	s.work.Go(func() { s.keepConnected(ctx) })
	s.work.Go(func() { s.tend(ctx) })
}

// opening gives a stream a number on the present connection and returns what
// sends it; nothing is sent without a connection, which will open the stream.
// mu must be held, and not when the function is called.
func (s *streams) opening(st *stream) func() {
	conn := s.conn
	if conn == nil || st.behind || st.ended || st.number != 0 {
		return func() {}
	}
	s.last++
	st.number = s.last
	s.numbered[st.number] = st
	frame := openFrame{Type: "open", Stream: st.number, nativeCall: st.asked.body}
	frame.Params = st.params()
	frame.Refused = frame.Refused || st.refused
	return func() { s.write(conn, frame) }
}

// close ends a stream whose client is gone, or has been told everything.
func (st *stream) close() {
	s := st.all
	s.mu.Lock()
	st.ended, st.queue, st.queued = true, nil, 0
	if _, ok := s.open[st]; !ok {
		s.mu.Unlock()
		return
	}
	delete(s.open, st)
	if len(s.open) == 0 {
		s.idle = time.Now()
	}
	put := s.puttingDown(st)
	s.mu.Unlock()
	put()
}

// detach runs what writes a stream after the handler of its request has returned.
func (s *streams) detach(write func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed { // nobody waits for it any more, and it has only the end to write
		go write()
		return
	}
	s.detached.Go(write)
}

// puttingDown takes a stream's number away and returns what tells the core. mu
// must be held, and not when the function is called.
func (s *streams) puttingDown(st *stream) func() {
	conn, number := s.conn, st.number
	if conn == nil || number == 0 {
		return func() {}
	}
	s.forget(st)
	return func() { s.write(conn, numberFrame{Type: "close", Stream: number}) }
}

// close ends all streams, and with them the connection. Clients have
// [closePatience] to read the end. It reports whether all work has ended within
// the same time: an Authorize may still run.
func (s *streams) close() bool {
	s.mu.Lock()
	s.closed = true
	for st := range s.open {
		if !st.admitted && st.refusal == nil {
			st.admit(internalError())
		}
		st.ended = true
		st.signal()
	}
	s.mu.Unlock()
	s.stop()
	waitFor(&s.detached, closePatience) // a client that does not read is given up later
	return waitFor(&s.work, closePatience)
}

// waitFor waits for a group, and reports false when that took too long.
func waitFor(group *sync.WaitGroup, patience time.Duration) bool {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// take is what a frame of the core does.
func (s *streams) take(data []byte) {
	var frame coreFrame
	if !decodeObject(data, &frame) {
		s.log.Warn("the core sent something that is no frame of a stream")
		return
	}
	s.mu.Lock()
	st := s.numbered[frame.Stream]
	after := func() {}
	switch {
	case s.closed: // which has said already what becomes of every stream
	case st == nil:
		after = s.stray(frame)
	case frame.End:
		s.forget(st)
		st.ended = true
		st.signal()
	case frame.Error != nil:
		s.forget(st)
		s.refusedBy(st, frame.Error)
	default:
		after = s.deliver(st, frame)
	}
	s.mu.Unlock()
	after()
}

// forget notes that a stream is not open at the core any more. mu must be held.
func (s *streams) forget(st *stream) {
	delete(s.numbered, st.number)
	st.number = 0
}

// stray answers what belongs to no stream. That is usual for one that was just
// closed; one that only now becomes active was closed before it was opened.
func (s *streams) stray(frame coreFrame) func() {
	conn := s.conn
	if frame.Method != notifyActive || conn == nil {
		return func() {}
	}
	return func() { s.write(conn, numberFrame{Type: "close", Stream: frame.Stream}) }
}

// refusedBy takes the core's no: an answer for a new stream, the end of one that
// was opened again. The latter goes on when the reason may pass. mu must be held.
func (s *streams) refusedBy(st *stream, refusal *jsonrpc.Error) {
	if !st.admitted {
		st.admit(refusal)
		return
	}
	if passing(refusal) {
		return // tend opens it again
	}
	params, err := encodeJSON(map[string]any{"error": refusal})
	if err == nil {
		st.queue = append(st.queue, notification{notifyTerminated, params}) // however full it is
	}
	st.ended = true
	st.signal()
}

// passing reports whether a stream that was opened again may be opened later. A
// limit may have counted the connection before, which the core had not yet given
// up.
func passing(refusal *jsonrpc.Error) bool {
	var data struct {
		Limit string `json:"limit"`
	}
	return refusal.Code == jsonrpc.CodeInternalError ||
		len(refusal.Data) > 0 && json.Unmarshal(refusal.Data, &data) == nil && data.Limit != ""
}

// deliver queues a notification for its client. mu must be held, and not when
// the function it returns is called.
func (s *streams) deliver(st *stream, frame coreFrame) func() {
	var params struct {
		Cursor    *string `json:"cursor"`
		Truncated bool    `json:"truncated"`
	}
	if json.Unmarshal(frame.Params, &params) != nil {
		s.log.Warn("the core sent a stream a notification without params")
		return func() {}
	}
	again := st.admitted
	method, content := frame.Method, frame.Params
	moved := method == notifyActive || method == notifyEvent || method == notifyHeartbeat
	if again && method == notifyActive && !params.Truncated {
		// It was opened again and lost nothing. A heartbeat says as much, and that
		// the stream lives.
		method, content = notifyHeartbeat, nil
	}
	before := st.cursor
	if moved && params.Cursor != nil {
		st.cursor = params.Cursor
	}
	if content == nil {
		content = st.heartbeat()
	}
	if !st.push(method, content) {
		st.cursor, st.behind = before, true
		return s.puttingDown(st)
	}
	if moved {
		st.troubled = false
	}
	if !st.admitted && method == notifyActive {
		st.admit(nil)
	}
	return func() {}
}
