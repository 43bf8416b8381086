package wake

import (
	"encoding/json"
	"slices"
	"time"
)

// A Subscription joins a conversation to a topic.
type Subscription struct {
	ID           string
	App          string
	Conversation string
	User         string // the conversation's user when it was made; empty is nobody
	Topic        string
	Event        string          // the event's name; empty for a subscription to a plain topic
	Arguments    json.RawMessage // canonical JSON of the event's arguments; nil for a plain topic
	Filter       Filter
	Once         bool // ends with the first occurrence it takes
	Claimed      bool // a native subscription has taken its place: it delivers nothing itself

	// From is the end of the log when the subscription was made: it is owed what came after.
	From Seq
	// Until is the last place it is owed, once it ended; 0 while it lives.
	Until Seq

	CreatedAt time.Time
	ExpiresAt time.Time
	EndedAt   time.Time // zero while it lives
}

// Live reports whether the subscription still takes new occurrences at that time.
func (s Subscription) Live(at time.Time) bool { return s.EndedAt.IsZero() && at.Before(s.ExpiresAt) }

// Takes reports whether the subscription is owed an occurrence: one in the log, or one about to be written (Seq 0). One to a
// plain topic takes whatever is written there, one to an event that event only.
func (s Subscription) Takes(o Occurrence) bool {
	switch {
	case o.Kind == KindErased, s.App != o.App, s.Claimed, s.Event != "" && s.Event != o.Event, !slices.Contains(o.Topics, s.Topic):
		return false
	case o.Seq != 0 && (o.Seq <= s.From || s.Until != 0 && o.Seq > s.Until):
		return false
	case o.Seq == 0 && !s.EndedAt.IsZero(), !o.At.Before(s.ExpiresAt):
		return false
	case o.To != "" && o.To != s.User:
		return false
	}
	return s.Filter.Passes(o.Data)
}
