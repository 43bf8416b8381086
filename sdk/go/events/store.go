package events

import (
	"context"
	"strings"
	"sync"
)

// A Store keeps what must outlive the process: cursors, secrets of webhooks, and
// deliveries that were accepted and not handled yet. It belongs to one process at
// a time, and holds secrets. Keys are short and consist of a-z, 0-9, "/" and "-";
// values are JSON. All methods are called concurrently.
type Store interface {
	// Put keeps a value under a key, in place of what was there. It is durable when
	// Put returns.
	Put(ctx context.Context, key string, value []byte) error
	// Delete removes a key. One that is not there is no error.
	Delete(ctx context.Context, key string) error
	// List returns what is kept under keys that begin with prefix.
	List(ctx context.Context, prefix string) (map[string][]byte, error)
}

// A MemoryStore keeps everything in memory. The zero value is empty and ready.
type MemoryStore struct {
	mu   sync.Mutex
	kept map[string][]byte
}

// Put is as in [Store].
func (s *MemoryStore) Put(_ context.Context, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string][]byte{}
	}
	s.kept[key] = value
	return nil
}

// Delete is as in [Store].
func (s *MemoryStore) Delete(_ context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, key)
	return nil
}

// List is as in [Store].
func (s *MemoryStore) List(_ context.Context, prefix string) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string][]byte{}
	for key, value := range s.kept {
		if strings.HasPrefix(key, prefix) {
			found[key] = value
		}
	}
	return found, nil
}
