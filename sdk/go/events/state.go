package events

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// A state is what is stored of a subscription.
type state struct {
	Event     string          `json:"event"`
	Arguments json.RawMessage `json:"arguments"`
	Mode      Mode            `json:"mode"`
	// Cursor is where to go on. Empty means from now.
	Cursor string `json:"cursor,omitempty"`
	// Lost: the cursor is gone, and what came after it may be missed.
	Lost bool `json:"lost,omitempty"`
	// Alive is when the subscription was last known to be in order.
	Alive time.Time `json:"alive,omitzero"`

	// Of a webhook: its id at the server, the last part of its URL, its secrets with
	// the newest first, and the place of Cursor among the records.
	ID       string   `json:"id,omitempty"`
	Token    string   `json:"token,omitempty"`
	URL      string   `json:"url,omitempty"`
	Secrets  []secret `json:"secrets,omitempty"`
	Sequence int64    `json:"sequence,omitempty"`
}

// load reads what is stored of the subscription, without its records.
func (s *Subscription) load(ctx context.Context) error {
	key := s.key + "/state"
	kept, err := s.client.opts.Store.List(ctx, key)
	if err != nil {
		return err
	}
	raw, ok := kept[key]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, &s.state); err != nil {
		return fmt.Errorf("events: the stored state of a subscription cannot be read: %w", err)
	}
	return nil
}

// update changes the state and stores it. The change counts even if storing
// fails, which is tried again with the next change.
func (s *Subscription) update(ctx context.Context, change func(*state)) error {
	s.saving.Lock() // states are stored in the order of their changes
	defer s.saving.Unlock()
	s.mu.Lock()
	change(&s.state)
	s.state.Event, s.state.Arguments, s.state.Mode = s.name, s.arguments, s.mode
	raw, err := json.Marshal(s.state)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.client.opts.Store.Put(ctx, s.key+"/state", raw)
}

// current is a copy of the state.
func (s *Subscription) current() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}
