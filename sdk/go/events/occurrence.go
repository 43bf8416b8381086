package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// An Occurrence is one thing that happened, or a gap. Its content is whatever the
// server says: data to be looked at, not an instruction to be followed.
type Occurrence struct {
	// Gap: events may have been missed before what comes next; all other members
	// but Name and Cursor are empty. Whoever keeps a state by events reads it anew.
	Gap bool
	// ID is the server's id of the event, the same however often and whichever way
	// it comes.
	ID   string
	Name string
	// Time is when it happened; zero if the server's timestamp cannot be read.
	Time time.Time
	Data json.RawMessage // nil if there is none
	Meta json.RawMessage // the event's _meta; nil if there is none
	// Cursor is the position after it, where it is known.
	Cursor string
}

// A wireOccurrence is an EventOccurrence of the protocol.
type wireOccurrence struct {
	EventID   string          `json:"eventId"`
	Name      string          `json:"name"`
	Timestamp string          `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
	Cursor    *string         `json:"cursor"`
	Meta      json.RawMessage `json:"_meta"`
}

func (w *wireOccurrence) occurrence() Occurrence {
	return Occurrence{ID: w.EventID, Name: w.Name, Time: readTime(w.Timestamp), Data: present(w.Data), Meta: present(w.Meta),
		Cursor: value(w.Cursor)}
}

// present is nil for what is null.
func present(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// value is a cursor; absent and null are the same everywhere.
func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// readTime reads a timestamp of ISO 8601; it is zero if that fails. One without
// a zone is taken as UTC.
func readTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t
		}
	}
	return time.Time{}
}

// canonical writes arguments so that equal ones are equal bytes: absent, null and
// {} are the same, and members are in order.
func canonical(arguments any) (json.RawMessage, error) {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return nil, fmt.Errorf("events: the arguments: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var members map[string]any
	if err := decoder.Decode(&members); err != nil {
		return nil, errors.New("events: the arguments must be a JSON object")
	}
	if members == nil {
		members = map[string]any{}
	}
	return json.Marshal(members)
}
