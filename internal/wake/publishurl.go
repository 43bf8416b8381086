package wake

import (
	"encoding/json"
	"time"
)

// A PublishURL is a capability that an app hands to a service which can only send webhooks: whoever has it emits one event with
// its arguments, or publishes to one topic.
type PublishURL struct {
	ID        string
	App       string
	Event     string          // empty for a topic's
	Arguments json.RawMessage // canonical JSON; nil for a topic's
	To        string          // the one user of a personal event
	Topic     string          // empty for an event's
	CreatedAt time.Time
	RevokedAt time.Time // zero while it is good
}

// Revoked reports whether the URL may no longer be used.
func (u PublishURL) Revoked() bool { return !u.RevokedAt.IsZero() }
