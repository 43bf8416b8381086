// Package trace is the live account of what the core does, for `rouse tail`: who subscribed, what was emitted and whom it matched,
// what was delivered, acknowledged or refused. It answers "why was my agent not woken?".
//
// An entry names things by their ids and carries no text, payload, credential or user. Entries are not kept: whoever does
// not follow misses them, and a follower too slow is told how many it missed.
package trace

import (
	"sync"
	"time"
)

// A Kind is what an entry tells of.
type Kind string

const (
	Subscribed   Kind = "subscribed"
	Renewed      Kind = "renewed"
	Ended        Kind = "ended"
	Emitted      Kind = "emitted"
	Duplicate    Kind = "duplicate"
	Matched      Kind = "matched"
	Connected    Kind = "connected"
	Disconnected Kind = "disconnected"
	Sent         Kind = "sent"      // on its way, not known to have arrived
	Delivered    Kind = "delivered" // arrived, as far as the path can tell
	Retrying     Kind = "retrying"
	Abandoned    Kind = "abandoned"
	Suspended    Kind = "suspended" // deliveries wait until the subscriber shows that it is there
	Refused      Kind = "refused"
	Missed       Kind = "missed" // entries this follower was too slow for
)

// An Entry is one thing the core did. Empty fields do not apply.
type Entry struct {
	At           time.Time `json:"at"`
	Kind         Kind      `json:"kind"`
	App          string    `json:"app,omitempty"`
	Event        string    `json:"event,omitempty"`
	Topic        string    `json:"topic,omitempty"`
	Occurrence   string    `json:"occurrence,omitempty"`
	Conversation string    `json:"conversation,omitempty"`
	Subscription string    `json:"subscription,omitempty"`
	Harness      string    `json:"harness,omitempty"`
	Path         string    `json:"path,omitempty"`
	Count        int       `json:"count,omitempty"`
	Code         string    `json:"code,omitempty"`
	Detail       string    `json:"detail,omitempty"`
}

// buffer is how many entries a follower may lag behind.
const buffer = 1024

// A Feed hands entries to whoever follows it. The zero value is ready to use; all methods are safe for concurrent use.
type Feed struct {
	mu        sync.RWMutex
	followers map[*Follower]struct{}
}

// Put hands an entry to the followers. It never blocks, and costs next to nothing while nobody follows.
func (f *Feed) Put(e Entry) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if len(f.followers) == 0 {
		return
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	for one := range f.followers {
		one.put(e)
	}
}

// Followed reports whether anybody follows: if not, there is no need to make entries.
func (f *Feed) Followed() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.followers) > 0
}

// Follow starts following; the caller closes the follower.
func (f *Feed) Follow() *Follower {
	one := &Follower{feed: f, c: make(chan Entry, buffer)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers == nil {
		f.followers = map[*Follower]struct{}{}
	}
	f.followers[one] = struct{}{}
	return one
}

// A Follower receives entries until it is closed.
type Follower struct {
	feed *Feed
	c    chan Entry

	mu     sync.Mutex
	missed int
}

// C receives the entries.
func (f *Follower) C() <-chan Entry { return f.c }

// Close ends the following. It is safe to call twice.
func (f *Follower) Close() {
	f.feed.mu.Lock()
	defer f.feed.mu.Unlock()
	delete(f.feed.followers, f)
}

func (f *Follower) put(e Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.missed > 0 {
		select {
		case f.c <- Entry{At: e.At, Kind: Missed, Count: f.missed}:
			f.missed = 0
		default:
		}
	}
	select {
	case f.c <- e:
	default:
		f.missed++
	}
}
