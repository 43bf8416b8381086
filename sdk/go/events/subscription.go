package events

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// A Subscription receives occurrences of one event. All methods are safe for
// concurrent use.
type Subscription struct {
	client    *Client
	name      string
	arguments json.RawMessage
	opts      SubscribeOptions
	mode      Mode
	key       string // its place in the Store
	queue     *queue
	seen      *recent // whoever delivers has it to himself
	iterating atomic.Bool

	// Of a webhook:
	hook      *endpoint
	keeping   chan struct{} // has one while a delivery is being stored
	erased    bool          // whoever has keeping looks at it
	sequence  atomic.Int64  // of the last record
	rotations chan chan<- error

	saving sync.Mutex
	mu     sync.Mutex
	state  state

	cancel context.CancelFunc
	done   chan struct{} // closed when nothing runs any more
}

// Mode is how the occurrences are delivered.
func (s *Subscription) Mode() Mode { return s.mode }

// Cursor is the position up to which everything was handled, or in case of a
// webhook is in the Store; empty if the event has none. It is good for
// [SubscribeOptions].Cursor.
func (s *Subscription) Cursor() string { return s.current().Cursor }

// All gives the occurrences as they come, each once as far as can be known, and
// waits for more. An occurrence counts as handled when the loop asks for the next
// one; the one at which the loop is left comes again with the next All, unless
// [Subscription.Settle] was called, and after a restart if there is a [Store].
//
// The loop ends without an error when the subscription is closed; with that of
// ctx; with [ErrInUse] if another All runs; with an error of the Store; and with
// the server's when it ends the subscription: see [ErrForbidden], [ErrNotFound]
// and [ErrUnsupported]. Everything else is dealt with and goes to the Logger.
func (s *Subscription) All(ctx context.Context) iter.Seq2[Occurrence, error] {
	return func(yield func(Occurrence, error) bool) {
		if !s.iterating.CompareAndSwap(false, true) {
			yield(Occurrence{}, ErrInUse)
			return
		}
		defer s.iterating.Store(false)
		for {
			next, err := s.queue.next(ctx)
			if err != nil {
				yield(Occurrence{}, err)
				return
			}
			if next == nil || !yield(next.occurrence, nil) {
				return
			}
			if err := s.settle(context.WithoutCancel(ctx), next); err != nil {
				yield(Occurrence{}, err)
				return
			}
		}
	}
}

// Settle counts the occurrence that All gave last as handled, for whoever leaves
// the loop at it. It does nothing if there is none.
func (s *Subscription) Settle(ctx context.Context) error {
	if first := s.queue.first(); first != nil && first.given.Load() {
		return s.settle(ctx, first)
	}
	return nil
}

// settle records that an item was handled.
func (s *Subscription) settle(ctx context.Context, i *item) error {
	if s.queue.first() != i {
		return nil // it is settled
	}
	var err error
	if i.record != "" {
		err = s.settleRecord(ctx, i)
	} else if cursor := s.queue.cursorOf(i); cursor != "" {
		err = s.moveTo(ctx, cursor)
	}
	if err == nil && i.loss {
		err = s.update(ctx, func(st *state) { st.Lost = false })
	}
	if err == nil {
		s.queue.remove(i)
	}
	return err
}

// moveTo stores a position.
func (s *Subscription) moveTo(ctx context.Context, cursor string) error {
	return s.update(ctx, func(st *state) { st.Cursor, st.Alive = cursor, time.Now() })
}

// gap is the occurrence that says that some may have been missed.
func (s *Subscription) gap(cursor string) Occurrence {
	return Occurrence{Gap: true, Name: s.name, Cursor: cursor}
}

// deliver queues an occurrence, unless it came before. It waits for room, and is
// false when ctx has ended. What comes twice still moves the position.
func (s *Subscription) deliver(ctx context.Context, o Occurrence, cursor string) bool {
	if o.ID != "" {
		key := keyOf("event " + o.ID)
		if s.seen.has(key) {
			s.advance(ctx, cursor)
			return ctx.Err() == nil
		}
		s.seen.add(key)
	}
	return s.queue.put(ctx, &item{occurrence: o, cursor: cursor}) == nil
}

// advance moves the position to where the server has nothing before.
func (s *Subscription) advance(ctx context.Context, cursor string) {
	if cursor == "" || !s.queue.advance(cursor) || s.current().Cursor == cursor {
		return
	}
	if err := s.moveTo(ctx, cursor); err != nil && ctx.Err() == nil {
		s.trouble("a position could not be stored", err)
	}
}

// finish ends the subscription with the server's refusal. What is outdated takes
// the cursor with it: the next subscription begins anew, and says that there is
// a gap.
func (s *Subscription) finish(ctx context.Context, end error) {
	if isOutdated(end) {
		err := s.update(ctx, func(st *state) { st.Lost, st.Cursor = st.Lost || st.Cursor != "", "" })
		if err != nil {
			s.trouble("a position could not be given up", err)
		}
	}
	s.queue.finish(end)
}

func (s *Subscription) trouble(what string, err error) {
	s.client.log.Warn("events: "+what, slog.String("event", s.name), slog.String("mode", string(s.mode)), slog.Any("error", err))
}

// Close ends the subscription here, and waits for that; at the server a webhook
// stays until it expires. A subscription of the same event, arguments and Key
// goes on with it. It may be called more than once.
func (s *Subscription) Close() error {
	s.queue.close()
	s.cancel()
	<-s.done
	if s.hook != nil {
		s.client.opts.Receiver.remove(s.hook, false)
	}
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.client.live[s.key] == s {
		delete(s.client.live, s.key)
	}
	return nil
}

// Unsubscribe ends the subscription here and at the server, and removes what is
// stored of it. One that the server no longer has is no error.
func (s *Subscription) Unsubscribe(ctx context.Context) error {
	if s.hook != nil {
		s.client.opts.Receiver.remove(s.hook, true) // what still comes is refused for good
	}
	s.queue.close()
	s.cancel()
	<-s.done
	var err error
	if s.mode == Webhook {
		err = s.unsubscribe(ctx, s.current().URL)
	}
	if err == nil {
		err = s.erase(ctx)
	}
	s.Close()
	return err
}

// erase removes all that is stored of the subscription, and keeps more from
// being stored.
func (s *Subscription) erase(ctx context.Context) error {
	s.keeping <- struct{}{}
	defer func() { <-s.keeping }()
	s.erased = true
	kept, err := s.client.opts.Store.List(ctx, s.key+"/")
	if err != nil {
		return err
	}
	for key := range kept {
		if err := s.client.opts.Store.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// base are the params that all methods about a subscription have.
func (s *Subscription) base() map[string]any {
	return map[string]any{"name": s.name, "arguments": s.arguments}
}

// position adds where to begin to params.
func (s *Subscription) position(params map[string]any, cursor string) map[string]any {
	params["cursor"] = nil
	if cursor != "" {
		params["cursor"] = cursor
		if s.opts.MaxAge > 0 {
			params["maxAgeMs"] = s.opts.MaxAge.Milliseconds()
		}
	}
	return params
}
