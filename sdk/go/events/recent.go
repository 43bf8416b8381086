package events

import (
	"crypto/sha256"
	"encoding/hex"
)

// mostRecent is how many ids of a subscription are remembered.
const mostRecent = 4096

// recent remembers the ids that came last, so that what comes twice counts once.
type recent struct {
	known map[string]bool
	order []string // a ring
	next  int
}

func newRecent() *recent { return &recent{known: map[string]bool{}} }

// keyOf is the key of an id: of a fixed length whatever the server sends.
func keyOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

func (r *recent) has(key string) bool {
	return r.known[key]
}

// add remembers a key that is new, and returns the one that is forgotten for it,
// or nothing.
func (r *recent) add(key string) (forgotten string) {
	if len(r.order) < mostRecent {
		r.known[key] = true
		r.order = append(r.order, key)
		return ""
	}
	forgotten = r.order[r.next]
	delete(r.known, forgotten)
	r.order[r.next], r.known[key] = key, true
	r.next = (r.next + 1) % mostRecent
	return forgotten
}
