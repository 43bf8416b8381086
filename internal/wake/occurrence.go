package wake

import (
	"encoding/json"
	"strconv"
	"time"
)

// A Seq is a place in the log. Places start at 1, grow, and are never used twice; 0 is before the first.
type Seq int64

// A Kind says what an occurrence is to the agent that reads it.
type Kind string

const (
	KindEvent Kind = "event" // something happened in the app
	KindEnded Kind = "ended" // a subscription of the conversation ended, and why
	// KindMissed tells a conversation that something was too old to be kept before it came for it.
	KindMissed Kind = "missed"
	// KindForgotten tells the app's native streams that a user was forgotten. No conversation reads it.
	KindForgotten Kind = "forgotten"
	// KindErased is an event whose content is gone, because it was to be deleted on delivery: nobody takes it any more.
	KindErased Kind = "erased"
)

// An Occurrence is one thing that happened. It is written once, whatever the number of those who receive it.
type Occurrence struct {
	Seq       Seq // 0 until it is in the log
	App       string
	Kind      Kind
	Event     string // the event's name; empty for a publish to topics
	Topics    []string
	Arguments json.RawMessage // the event's arguments; nil for a publish
	Text      string          // what the agent reads first
	Data      json.RawMessage // the payload, a compact JSON object; nil when there is none
	To        string          // the one user it is for; empty is everybody
	Key       string          // the app's own id of it, which makes a repeated emit count once; empty when it gave none
	Matched   int             // how many subscribers it had when it was written
	At        time.Time
	// Fleeting asks whoever writes it to see to it that its content is erased once it has been delivered. It is not kept.
	Fleeting bool
}

// Erased is the occurrence without its content: the fact that it happened, to whom and when, remains.
func (o Occurrence) Erased() Occurrence {
	o.Kind, o.Arguments, o.Text, o.Data = KindErased, nil, "", nil
	return o
}

// EventID is the occurrence's stable id as agents and receivers see it: the app's own where it gave one that is safe in a
// header, else one made of the log's epoch and the place in it.
func (o Occurrence) EventID(epoch string) string {
	if o.Key != "" && headerSafe(o.Key) {
		return o.Key
	}
	return o.ID(epoch)
}

// ID is the occurrence's id within this core. Unlike [Occurrence.EventID] it differs between any two occurrences.
func (o Occurrence) ID(epoch string) string { return OccurrenceID(epoch, o.Seq) }

// OccurrenceID is the id of the occurrence at a place of the log with that epoch.
func OccurrenceID(epoch string, seq Seq) string {
	return "evt_" + epoch + strconv.FormatInt(int64(seq), 36)
}

// ParseOccurrenceID gives the place that an id of this log names; ok is false for any other text.
func ParseOccurrenceID(epoch, id string) (seq Seq, ok bool) {
	prefix := "evt_" + epoch
	if len(id) <= len(prefix) || id[:len(prefix)] != prefix {
		return 0, false
	}
	n, err := strconv.ParseInt(id[len(prefix):], 36, 64)
	if err != nil || n <= 0 || OccurrenceID(epoch, Seq(n)) != id {
		return 0, false
	}
	return Seq(n), true
}

// headerSafe reports whether a text can stand in an HTTP header and in a signed "id.timestamp.body" without ambiguity.
func headerSafe(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= 256
}
