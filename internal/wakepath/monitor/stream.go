package monitor

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/wake"
)

// What Claude Code takes without dropping a line (measured: ten notifications at once, then one per two seconds), and what keeps
// a stream alive.
const (
	burst     = 10
	spacing   = 2 * time.Second
	keepalive = 20 * time.Second
	// settled is how long a line must have been out on a live connection before it counts as delivered.
	settled = 2 * time.Second
	// backlog is how many messages may wait for the pace; more are folded into a digest.
	backlog = 20
	// pageSize is how many messages are read at once. It bounds what a digest stands for.
	pageSize = 500
	// writeTimeout bounds a write to a connection that takes nothing.
	writeTimeout = 30 * time.Second
)

// stream serves one running command.
func (h *handler) stream(w http.ResponseWriter, r *http.Request) {
	token := r.PathValue("token")
	inbox, err := h.core.OpenStream(r.Context(), token)
	if errors.Is(err, core.ErrGone) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err != nil {
		h.failed(r.Context(), err)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer inbox.Close()
	s := &stream{handler: h, token: token, inbox: inbox, w: w, out: http.NewResponseController(w), conn: connOf(r.Context()),
		once: r.URL.Query().Get("once") == "1", pacer: wake.NewPacer(burst, spacing, time.Now())}
	if err := s.read(r.Context()); err != nil {
		s.cut(r.Context(), err)
	}
	if s.over() {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	header(w, "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	if err := s.run(r.Context()); err != nil {
		s.cut(r.Context(), err)
	}
}

// A stream is one running command's connection.
type stream struct {
	handler *handler
	token   string
	inbox   *core.Inbox
	w       http.ResponseWriter
	out     *http.ResponseController
	conn    *connection
	once    bool // ends after the first event
	pacer   *wake.Pacer

	pending   []core.Message // read, not written
	written   []written      // written, not settled
	lastWrite time.Time
	woken     bool // an event went out
}

// written is a line that went out, and what whoever has it has received.
type written struct {
	receipt core.Receipt
	at      time.Time
}

// errStopping cuts a stream because the core stops.
var errStopping = errors.New("the core is stopping")

// cut ends the connection so that the command notices it was cut short and comes back.
func (s *stream) cut(ctx context.Context, err error) {
	if !errors.Is(err, errStopping) && !errors.Is(err, context.Canceled) {
		s.handler.failed(ctx, err)
	}
	panic(http.ErrAbortHandler)
}

// over reports that there is nothing left to wait for.
func (s *stream) over() bool {
	if s.once && s.woken {
		return len(s.written) == 0
	}
	return s.inbox.Finished() && len(s.pending) == 0 && len(s.written) == 0
}

// waiting reports that there is a message to put out as soon as the pace allows.
func (s *stream) waiting() bool { return len(s.pending) > 0 && !(s.once && s.woken) }

// read fetches what is owed and not read yet.
func (s *stream) read(ctx context.Context) error {
	if len(s.pending) >= pageSize {
		return nil
	}
	more, err := s.inbox.Read(ctx, pageSize-len(s.pending))
	if errors.Is(err, core.ErrGone) {
		return nil // forgotten: nothing more will come
	}
	s.pending = append(s.pending, more...)
	return err
}

// run writes what is owed as it comes, until nothing is left to wait for (nil) or the stream must be cut.
func (s *stream) run(ctx context.Context) error {
	s.lastWrite = time.Now()
	if err := s.out.Flush(); err != nil {
		return err
	}
	for {
		if err := s.put(time.Now()); err != nil {
			return err
		}
		if err := s.settle(ctx, time.Now()); err != nil {
			return err
		}
		if s.over() {
			return nil
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
		if err := s.read(ctx); err != nil {
			return err
		}
		select {
		case <-s.inbox.Superseded():
			return nil
		default:
		}
	}
}

// put writes as many lines as the pace allows, a digest for what is too much, and a blank line when it was quiet for long.
func (s *stream) put(now time.Time) error {
	var lines []byte
	ready := s.pacer.Ready(now)
	flood := len(s.pending) > ready+backlog
	for ready > 0 && s.waiting() {
		if flood && ready == 1 {
			lines = append(lines, s.fold(now)...)
			break
		}
		m := s.pending[0]
		s.pending = s.pending[1:]
		lines = append(lines, lineOf(m, s.handler.whole(s.token, m.ID))...)
		s.note([]core.Message{m}, now)
		ready--
	}
	if lines == nil {
		if now.Sub(s.lastWrite) < keepalive {
			return nil
		}
		lines = []byte("\n")
	}
	s.lastWrite = now
	// Not every connection has deadlines; those that do not are bounded by their own means.
	_ = s.out.SetWriteDeadline(now.Add(writeTimeout))
	if _, err := s.w.Write(lines); err != nil {
		return err
	}
	return s.out.Flush()
}

// fold makes one line of everything that is pending, as far as it is of the log or of one replay: what the line's address
// gives lies between two places.
func (s *stream) fold(now time.Time) []byte {
	count := 1
	for count < len(s.pending) && s.pending[count].Replay == s.pending[0].Replay {
		count++
	}
	folded := s.pending[:count]
	digest := digestLine(s.inbox.App().Name, folded, s.handler.digest(s.token, folded))
	s.note(folded, now)
	s.pending = s.pending[count:]
	return digest
}

// note records messages that one line stands for.
func (s *stream) note(messages []core.Message, now time.Time) {
	s.pacer.Spend(1, now)
	s.inbox.Sent(messages)
	var receipt core.Receipt
	receipt.Add(messages...)
	s.written = append(s.written, written{receipt, now})
	s.woken = true
}

// settle records as delivered what has been out long enough on a connection that still lives.
func (s *stream) settle(ctx context.Context, now time.Time) error {
	var receipt core.Receipt
	for len(s.written) > 0 && now.Sub(s.written[0].at) >= settled {
		if !s.conn.empty() {
			if now.Sub(s.written[0].at) > writeTimeout {
				return context.Canceled // the other end takes nothing any more
			}
			break
		}
		receipt.AddAll(s.written[0].receipt)
		s.written = s.written[1:]
	}
	if receipt.Empty() {
		return nil
	}
	return s.inbox.Settle(ctx, receipt)
}

// wait returns when there may be something to do.
func (s *stream) wait(ctx context.Context) error {
	now := time.Now()
	next := keepalive - now.Sub(s.lastWrite)
	if len(s.written) > 0 {
		// What did not settle in time waits for the connection: it is asked again, not all the time.
		next = min(next, max(settled-now.Sub(s.written[0].at), 100*time.Millisecond))
	}
	if s.waiting() {
		next = min(next, s.pacer.Wait(now))
	}
	timer := time.NewTimer(max(next, 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.handler.stopping:
		return errStopping
	case <-s.inbox.Superseded():
	case <-s.inbox.Changed():
	case <-timer.C:
	}
	return nil
}
