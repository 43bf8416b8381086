package events

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
)

var (
	errSilent     = errors.New("events: the stream has been silent for too long")
	errStreamOver = errors.New("events: the stream ended before it began")
)

// healthy is how long a stream must last for the next one to be opened without
// the waits of a failure.
const healthy = time.Minute

// A pushed is the params of the notifications of a stream.
type pushed struct {
	Cursor    *string `json:"cursor"`
	Truncated bool    `json:"truncated"`
	Error     *Error  `json:"error"`
}

// A watched is a stream with a watchdog.
type watched struct {
	stream  stream
	ctx     context.Context
	cancel  context.CancelCauseFunc
	silence time.Duration
	first   *message // read already
}

// next waits for a message for as long as a stream may be silent. That the
// messages are not asked for does not count.
func (w *watched) next() (message, error) {
	if first := w.first; first != nil {
		w.first = nil
		return *first, nil
	}
	dog := time.AfterFunc(w.silence, func() { w.cancel(errSilent) })
	defer dog.Stop()
	m, err := w.stream.next()
	if err != nil && context.Cause(w.ctx) != nil {
		err = context.Cause(w.ctx)
	}
	return m, err
}

func (w *watched) close() {
	w.cancel(nil)
	w.stream.close()
}

// watch opens a stream that lives as long as running, and waits for its first
// message.
func (c *Client) watch(ctx, running context.Context, r request) (*watched, error) {
	w := &watched{silence: c.opts.Silence}
	w.ctx, w.cancel = context.WithCancelCause(running)
	stop := context.AfterFunc(ctx, func() { w.cancel(ctx.Err()) })
	defer stop()
	dog := time.AfterFunc(c.opts.Silence, func() { w.cancel(errSilent) })
	var err error
	w.stream, err = c.conn.open(w.ctx, r)
	dog.Stop()
	if err != nil {
		if cause := context.Cause(w.ctx); cause != nil {
			err = cause
		}
		w.cancel(nil)
		return nil, err
	}
	first, err := w.next()
	if err == nil && first.isResponse() {
		if _, err = first.outcome(); err == nil {
			err = errStreamOver
		}
	}
	if errors.Is(err, io.EOF) {
		err = errStreamOver
	}
	if err != nil {
		w.close()
		return nil, err
	}
	w.first = &first
	return w, nil
}

func (s *Subscription) openStream(ctx, running context.Context, cursor string) (*watched, error) {
	return s.client.watch(ctx, running, request{method: methodStream, name: s.name, params: s.position(s.base(), cursor)})
}

// startStreaming opens the first stream, which fixes where the subscription
// begins and tells what is refused.
func (s *Subscription) startStreaming(ctx, running context.Context) (func(), error) {
	cursor := s.state.Cursor
	w, err := s.openStream(ctx, running, cursor)
	if err != nil {
		if isOutdated(err) {
			s.finish(ctx, err)
		}
		return nil, err
	}
	if active := readPushed(*w.first); cursor == "" && w.first.Method == noteActive && value(active.Cursor) != "" {
		if err := s.moveTo(ctx, value(active.Cursor)); err != nil {
			w.close()
			return nil, err
		}
	}
	return func() { s.keepStreaming(running, cursor, w) }, nil
}

// keepStreaming reads a stream to its end, and opens the next one.
func (s *Subscription) keepStreaming(ctx context.Context, cursor string, w *watched) {
	var failures backoff
	for {
		begun := time.Now()
		err := s.readStream(ctx, w, &cursor)
		w.close()
		if time.Since(begun) >= healthy {
			failures.reset()
		}
		for {
			if ctx.Err() != nil {
				return
			}
			if isLasting(err) || s.isFinished() {
				s.finish(ctx, err)
				return
			}
			if err != nil {
				s.trouble("a stream broke and is opened again", err)
			}
			if !sleep(ctx, failures.wait(err)) {
				return
			}
			if w, err = s.openStream(ctx, ctx, cursor); err == nil {
				break
			}
		}
		if cursor == "" && !s.deliver(ctx, s.gap(""), "") { // nothing is replayed
			w.close()
			return
		}
	}
}

// isFinished says that the server has ended the subscription.
func (s *Subscription) isFinished() bool {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return s.queue.end != nil
}

// readStream delivers what a stream brings. It returns nil when the server closed
// it, as it may for reasons of its own.
func (s *Subscription) readStream(ctx context.Context, w *watched, cursor *string) error {
	canSkip := *cursor != "" // a stream from now on skips nothing at its beginning
	for ; ; canSkip = true {
		m, err := w.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if errors.Is(err, errMalformed) {
			s.trouble("a message of a stream cannot be read", err)
			continue
		}
		if err != nil {
			return err
		}
		if m.isResponse() {
			_, err := m.outcome()
			return err
		}
		if done, err := s.takePushed(ctx, m, cursor, canSkip); done || err != nil {
			return err
		}
	}
}

// takePushed deals with a notification. It says whether the stream is over; what
// is unknown is passed over.
func (s *Subscription) takePushed(ctx context.Context, m message, cursor *string, canSkip bool) (done bool, err error) {
	p := readPushed(m)
	next := value(p.Cursor)
	switch m.Method {
	case noteActive:
		if p.Truncated && canSkip && !s.deliver(ctx, s.gap(next), next) {
			return true, nil
		}
		s.advance(ctx, next)
	case noteEvent:
		var o wireOccurrence
		if json.Unmarshal(m.Params, &o) != nil {
			s.trouble("an event of a stream cannot be read", errMalformed)
			return false, nil
		}
		if !s.deliver(ctx, o.occurrence(), next) {
			return true, nil
		}
	case noteHeartbeat:
		s.advance(ctx, next)
	case noteError:
		if p.Error != nil {
			s.trouble("the server has trouble with a stream, which goes on", p.Error)
		}
	case noteTerminated:
		if p.Error == nil {
			p.Error = &Error{Message: "terminated"}
		}
		s.finish(ctx, p.Error)
		return true, p.Error
	}
	if next != "" {
		*cursor = next
	}
	return false, nil
}

// readPushed reads the params of a notification; what cannot be read is absent.
func readPushed(m message) pushed {
	var p pushed
	if json.Unmarshal(m.Params, &p) != nil {
		return pushed{}
	}
	return p
}
