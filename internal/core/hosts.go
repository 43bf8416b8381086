package core

import (
	"slices"
	"sync"
	"time"
)

// How a node's attempts at webhooks are shared among their hosts.
const (
	maxAttempts     = 512             // under way at once
	hostAttempts    = 32              // at one host that answers
	freshAttempts   = 4               // at one host that nothing is known of yet
	doubtedAttempts = 2               // at one host that fails, or keeps an attempt waiting
	maxDoubted      = maxAttempts / 4 // at hosts that fail or keep waiting, together
	maxFresh        = maxAttempts / 2 // at hosts nothing is known of, together
	maxUnproven     = maxAttempts * 3 / 4
	slowAfter       = time.Second // without an answer since, a host keeps an attempt waiting
	heardFor        = time.Minute // after an answered attempt, something is known of a host

	opensAfter   = 5 // failures in a row
	firstPause   = 5 * time.Second
	longestPause = 5 * time.Minute

	maxHosts = 10_000 // that are remembered
)

// A verdict is what an attempt says of its host.
type verdict int

const (
	unheard  verdict = iota // nothing: the attempt was broken off
	answered                // the host is well, whatever it thought of the message
	faulty                  // the host answered with a fault of its own (5xx)
	dead                    // there was no answer
)

// hosts decides how many attempts a host may have at a time, so that hosts that are dead or slow never keep others waiting. A host
// that fails several times in a row opens its circuit: no attempts but one, the probe, after a pause that grows. The zero
// value is ready for use; all methods are safe for concurrent use.
//
// What is remembered is this node's own experience. It is bounded: hosts that are well and idle are forgotten first.
type hosts struct {
	mu    sync.Mutex
	known map[string]*host
	busy  map[*host]struct{} // with attempts under way
	ill   map[*host]struct{} // that failed last
	count int                // attempts under way
}

// A host is what is known of one.
type host struct {
	name    string
	tries   []*try    // under way, in the order they began
	heard   time.Time // when it last answered an attempt
	well    time.Time // when it last answered anything
	streak  int       // failures since it last answered
	failing string    // the webhook whose attempt failed first among them
	several bool      // the failures are those of more than one webhook
	open    bool
	until   time.Time // while open: when a probe is due
	pause   time.Duration
}

// A try is an attempt that was let through.
type try struct {
	host    *host
	webhook string
	begun   time.Time
	probe   bool
}

// begin lets an attempt at a webhook through, or says that its host, or the node, has no room for it now.
func (h *hosts) begin(name, webhook string, at time.Time) (*try, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.known[name]
	if one == nil {
		one = &host{name: name} // kept only when it is let through
	}
	if !h.room(one, h.load(at), at) {
		return nil, false
	}
	h.keep(one)
	t := &try{host: one, webhook: webhook, begun: at, probe: one.open}
	one.tries = append(one.tries, t)
	h.busy[one] = struct{}{}
	h.count++
	return t, true
}

// end takes note of how an attempt went. It is called once for each that began.
func (h *hosts) end(t *try, is verdict, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := t.host
	one.tries = slices.DeleteFunc(one.tries, func(other *try) bool { return other == t })
	if h.count--; len(one.tries) == 0 {
		delete(h.busy, one)
	}
	switch is {
	case answered:
		one.heard = at
		h.recover(one, at)
	case faulty, dead:
		one.fail(t, is, at)
		h.ill[one] = struct{}{}
	}
}

// proved takes note that a host answered to something else than an attempt. How it takes deliveries is not known by that.
func (h *hosts) proved(name string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.known[name]
	if one == nil {
		one = &host{name: name}
		h.keep(one)
	}
	h.recover(one, at)
}

func (h *hosts) recover(one *host, at time.Time) {
	one.well, one.streak, one.several, one.open, one.pause = at, 0, false, false, 0
	delete(h.ill, one)
}

// pausedUntil is when a host whose circuit is open may be tried again; the zero time for any other.
func (h *hosts) pausedUntil(name string) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.known[name]; one != nil && one.open {
		return one.until
	}
	return time.Time{}
}

// full lists hosts that have no room now, at most so many, and says when the first pause among them is over; the zero time when
// none has one.
func (h *hosts) full(at time.Time, most int) (names []string, next time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	load := h.load(at)
	look := func(one *host) {
		if one.open && at.Before(one.until) && (next.IsZero() || one.until.Before(next)) {
			next = one.until
		}
		if len(names) < most && !h.room(one, load, at) {
			names = append(names, one.name)
		}
	}
	for one := range h.ill {
		look(one)
	}
	for one := range h.busy {
		if one.streak == 0 {
			look(one)
		}
	}
	return names, next
}

// free is how many more attempts the node may make.
func (h *hosts) free() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maxAttempts - h.count
}

// A load is how many attempts are under way at hosts that do not answer, and at hosts that nothing is known of.
type load struct{ doubted, fresh int }

func (h *hosts) load(at time.Time) (l load) {
	for one := range h.busy {
		switch {
		case one.doubted(at):
			l.doubted += len(one.tries)
		case one.fresh(at):
			l.fresh += len(one.tries)
		}
	}
	return l
}

// room reports whether one more attempt at a host may begin.
func (h *hosts) room(one *host, l load, at time.Time) bool {
	under := len(one.tries)
	switch {
	case h.count >= maxAttempts:
		return false
	case one.open:
		return under == 0 && !at.Before(one.until) && l.doubted < maxDoubted
	case one.doubted(at):
		return under < doubtedAttempts && l.doubted < maxDoubted
	case one.fresh(at):
		return under < freshAttempts && l.fresh < maxFresh && l.doubted+l.fresh < maxUnproven
	}
	return under < hostAttempts
}

// keep remembers a host, and forgets others when there are too many.
func (h *hosts) keep(one *host) {
	if h.known == nil {
		h.known, h.busy, h.ill = map[string]*host{}, map[*host]struct{}{}, map[*host]struct{}{}
	}
	if h.known[one.name] == nil && len(h.known) >= maxHosts {
		h.forget(func(o *host) bool { return o.streak == 0 })
		h.forget(func(*host) bool { return true })
	}
	h.known[one.name] = one
}

// forget drops hosts of a kind that are idle, as long as there are more than nine tenths of what may be.
func (h *hosts) forget(kind func(*host) bool) {
	for name, one := range h.known {
		if len(h.known) <= maxHosts*9/10 {
			return
		}
		if len(one.tries) == 0 && kind(one) {
			delete(h.known, name)
			delete(h.ill, one)
		}
	}
}

// doubted reports whether a host fails, or has kept an attempt waiting without answering any since it began.
func (o *host) doubted(at time.Time) bool {
	return o.streak > 0 || len(o.tries) > 0 && at.Sub(o.tries[0].begun) >= slowAfter && !o.well.After(o.tries[0].begun)
}

// fresh reports whether nothing is known of how a host takes deliveries now.
func (o *host) fresh(at time.Time) bool {
	return o.heard.IsZero() || at.Sub(o.heard) >= heardFor
}

// fail counts a failure and opens the circuit when there were enough. Faults of one webhook alone open none: what is broken may be
// that endpoint, and the others of its host are well.
func (o *host) fail(t *try, is verdict, at time.Time) {
	if o.streak++; o.streak == 1 {
		o.failing = t.webhook
	}
	o.several = o.several || t.webhook != o.failing
	switch {
	case o.open && t.probe:
		o.pause = min(2*o.pause, longestPause)
	case !o.open && o.streak >= opensAfter && (is == dead || o.several):
		o.open, o.pause = true, firstPause
	default:
		return
	}
	o.until = at.Add(o.pause)
}
