// Package bus carries "look again" hints from those who write the log to those who wait for it.
//
// A hint says that a topic may have something new and nothing else. It may be lost or come twice: whoever waits reads the
// store, which is the truth, on every hint and from time to time without one. Here belong the interface and the in-process
// implementation; what carries hints between nodes wraps it, and is in a package of its own (bus/postgres).
package bus

import "sync"

// A Key names what may have changed: a topic of an app.
type Key struct{ App, Topic string }

// A Bus passes hints on. All methods are safe for concurrent use.
type Bus interface {
	// Hint tells everyone who watches one of the keys to look again. It never blocks.
	Hint(keys ...Key)
	// Watch returns a new watch of the keys; the caller closes it.
	Watch(keys ...Key) *Watch
	// Notify returns a new watch that calls f on each hint instead of passing it to C; the caller closes it, after which f is
	// not called any more. f is called by whoever hints: it is quick, waits for nobody and does not call the bus.
	Notify(f func(), keys ...Key) *Watch
}

// Local is the bus of one process. The zero value is ready to use.
type Local struct {
	mu       sync.RWMutex
	watchers map[Key]map[*Watch]struct{}
}

// Hint tells everyone who watches one of the keys to look again.
func (b *Local) Hint(keys ...Key) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, key := range keys {
		for w := range b.watchers[key] {
			w.hint()
		}
	}
}

// HintAll tells everyone to look again, whatever they watch: hints may have been lost.
func (b *Local) HintAll() {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, watchers := range b.watchers {
		for w := range watchers {
			w.hint()
		}
	}
}

// Watch returns a new watch of the keys.
func (b *Local) Watch(keys ...Key) *Watch {
	return b.watch(&Watch{bus: b, c: make(chan struct{}, 1)}, keys)
}

// Notify returns a new watch of the keys that calls f; see [Bus].
func (b *Local) Notify(f func(), keys ...Key) *Watch {
	return b.watch(&Watch{bus: b, f: f}, keys)
}

func (b *Local) watch(w *Watch, keys []Key) *Watch {
	w.Set(keys...)
	return w
}

// A Watch is told when one of its keys is hinted at.
type Watch struct {
	bus  *Local
	c    chan struct{}
	f    func() // called in place of sending to c; nil: there is none
	keys []Key  // guarded by bus.mu
}

func (w *Watch) hint() {
	if w.f != nil {
		w.f()
		return
	}
	select {
	case w.c <- struct{}{}:
	default: // it has not looked since the last hint, and will
	}
}

// C receives after a hint; any number of hints since the last receive are one. It is nil for a watch that Notify made.
func (w *Watch) C() <-chan struct{} { return w.c }

// Set replaces the keys. A caller that reads the store after Set misses nothing.
func (w *Watch) Set(keys ...Key) {
	w.bus.mu.Lock()
	defer w.bus.mu.Unlock()
	w.drop()
	if w.bus.watchers == nil {
		w.bus.watchers = map[Key]map[*Watch]struct{}{}
	}
	w.keys = append([]Key(nil), keys...)
	for _, key := range w.keys {
		if w.bus.watchers[key] == nil {
			w.bus.watchers[key] = map[*Watch]struct{}{}
		}
		w.bus.watchers[key][w] = struct{}{}
	}
}

// Close ends the watch. It is safe to call twice.
func (w *Watch) Close() {
	w.bus.mu.Lock()
	defer w.bus.mu.Unlock()
	w.drop()
}

func (w *Watch) drop() {
	for _, key := range w.keys {
		delete(w.bus.watchers[key], w)
		if len(w.bus.watchers[key]) == 0 {
			delete(w.bus.watchers, key)
		}
	}
	w.keys = nil
}
