package events

import (
	"context"
	"sync"
	"sync/atomic"
)

// What waits in a queue.
const (
	mostQueued      = 256
	mostQueuedBytes = 8 << 20
)

// An item is an occurrence on its way to the loop that handles it.
type item struct {
	occurrence Occurrence
	cursor     string // where to go on once it is handled; empty: as before
	record     string // the key under which it is stored; empty: it is not
	sequence   int64  // its place among the records
	loss       bool   // it tells of a lost cursor, which the state notes until it is handled
	given      atomic.Bool
}

func (i *item) size() int {
	return len(i.occurrence.Data) + len(i.occurrence.Meta) + len(i.occurrence.ID)
}

// A queue is what a subscription received and nobody handled yet. The first item
// stays until it is handled.
type queue struct {
	mu      sync.Mutex
	items   []*item
	bytes   int
	end     error         // why nothing more comes, once the items are handled
	closed  bool          // nothing more is given out
	changed chan struct{} // closed and replaced with every change
}

func newQueue() *queue { return &queue{changed: make(chan struct{})} }

// signal wakes whoever waits; mu is held.
func (q *queue) signal() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *queue) isFull(size int) bool {
	return len(q.items) >= mostQueued || len(q.items) > 0 && q.bytes+size > mostQueuedBytes
}

// put adds an item, and waits for room. It fails when ctx ends.
func (q *queue) put(ctx context.Context, i *item) error {
	for {
		ok, changed := q.offer(i)
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// offer adds an item if there is room.
func (q *queue) offer(i *item) (ok bool, changed <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isFull(i.size()) {
		return false, q.changed
	}
	q.add(i)
	return true, nil
}

// restore adds an item whatever the room: it was accepted once.
func (q *queue) restore(i *item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(i)
}

func (q *queue) add(i *item) {
	q.items = append(q.items, i)
	q.bytes += i.size()
	q.signal()
}

func (q *queue) hasRoom(size int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.isFull(size)
}

// advance moves the position without an item: it holds once all that waits is
// handled. It says whether that is now.
func (q *queue) advance(cursor string) (now bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return true
	}
	q.items[len(q.items)-1].cursor = cursor
	return false
}

// next is the first item, which stays. It waits for one, and is nil when the
// queue is closed.
func (q *queue) next(ctx context.Context) (*item, error) {
	for {
		q.mu.Lock()
		first, changed, end, closed := (*item)(nil), q.changed, q.end, q.closed
		if len(q.items) > 0 {
			first = q.items[0]
		}
		q.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case closed:
			return nil, nil
		case first != nil:
			first.given.Store(true)
			return first, nil
		case end != nil:
			return nil, end
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// first is the first item, or nil.
func (q *queue) first() *item {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return nil
	}
	return q.items[0]
}

// endsInGap says that the last that came is a gap, of which nobody was told yet.
func (q *queue) endsInGap() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return false
	}
	last := q.items[len(q.items)-1]
	return last.occurrence.Gap && !last.given.Load()
}

// cursorOf is where to go on once an item is handled.
func (q *queue) cursorOf(i *item) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return i.cursor
}

// remove takes the first item away, if it is i.
func (q *queue) remove(i *item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 || q.items[0] != i {
		return
	}
	q.items[0] = nil
	q.items = q.items[1:]
	q.bytes -= i.size()
	q.signal()
}

// finish says that nothing more comes.
func (q *queue) finish(end error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.end == nil {
		q.end = end
		q.signal()
	}
}

// close gives out nothing more.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}
