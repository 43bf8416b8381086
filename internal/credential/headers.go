package credential

import (
	"strings"
	"sync"
)

// Bounds of a headerCache. A key signs all its assertions under one header, or a few.
const (
	maxHeaders     = 4096
	maxHeaderBytes = 1024 // a longer one is read each time
)

// A headerCache remembers the key ids of headers that were read, checked and under a signature that held, by their exact
// base64url. What a header means depends on nothing else, so no entry is ever out of date; who has no key adds none. The zero
// value is ready to use, nil remembers nothing; safe for concurrent use.
type headerCache struct {
	mu   sync.RWMutex
	kids map[string]string
}

func (c *headerCache) get(head string) (kid string, ok bool) {
	if c == nil {
		return "", false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	kid, ok = c.kids[head]
	return kid, ok
}

func (c *headerCache) put(head, kid string) {
	if c == nil || len(head) > maxHeaderBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kids == nil || len(c.kids) >= maxHeaders {
		c.kids = map[string]string{}
	}
	c.kids[strings.Clone(head)] = kid // not the rest of the token with it
}
