package events

import (
	"encoding/json"
	"errors"
)

// A delivery is the body of a webhook.
type delivery struct {
	kind       string // of a control envelope; empty: an event
	challenge  string
	occurrence wireOccurrence
	cursor     string
	ended      *Error
}

// The kinds of control envelopes.
const (
	kindVerification = "verification"
	kindGap          = "gap"
	kindTerminated   = "terminated"
)

// mostChallenge bounds what is echoed.
const mostChallenge = 4096

var errBadDelivery = errors.New("events: the body is no delivery")

// readDelivery reads a body. A control envelope of a kind that is not known is
// given as it is.
func readDelivery(body []byte) (delivery, error) {
	var b struct {
		wireOccurrence
		Type      *string `json:"type"`
		Challenge string  `json:"challenge"`
		Error     *Error  `json:"error"`
	}
	if json.Unmarshal(body, &b) != nil {
		return delivery{}, errBadDelivery
	}
	d := delivery{occurrence: b.wireOccurrence, challenge: b.Challenge, cursor: value(b.Cursor), ended: b.Error}
	if b.EventID != "" {
		if b.Name == "" {
			return delivery{}, errBadDelivery
		}
		return d, nil
	}
	if b.Type == nil || *b.Type == "" {
		return delivery{}, errBadDelivery
	}
	d.kind = *b.Type
	if d.kind == kindVerification && (d.challenge == "" || len(d.challenge) > mostChallenge) {
		return delivery{}, errBadDelivery
	}
	if d.kind == kindTerminated && d.ended == nil {
		d.ended = &Error{Message: "terminated"}
	}
	return d, nil
}

// A record is a delivery as it is stored. It stays when it was handled, so that
// it is known if it comes again.
type record struct {
	Sequence int64           `json:"sequence"`
	Gap      bool            `json:"gap,omitempty"`
	Event    *wireOccurrence `json:"event,omitempty"`
	Cursor   string          `json:"cursor,omitempty"`
	Done     bool            `json:"done,omitempty"`
}
