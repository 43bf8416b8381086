package refusal

import (
	"errors"
	"fmt"
	"maps"
	"time"
)

// A Code names a kind of refusal on the wire.
type Code string

// A Refusal is an answer that says no: bad input, a credential that does not hold, a limit. Its message names the field and
// the limit, and never holds a credential or a payload.
type Refusal struct {
	Code    Code
	Message string
	// Reason is a machine's word for why, where the code has several: what a callback did, say.
	Reason string
	// RetryAfter is how long to wait before trying again; 0 when the catalogue's entry gives no such advice.
	RetryAfter time.Duration
	// Detail is what the refusal is about, for a machine that knows the code, by the names that MCP Events has for it: the
	// limit that was reached, the feature that is not offered. nil: the code says it all.
	Detail map[string]any
}

// Error is the code and the message.
func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Message }

// Status is the HTTP status of the refusal's code.
func (r *Refusal) Status() int { return Lookup(r.Code).Status }

// New makes a refusal; the message is formatted as by [fmt.Sprintf].
func New(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithReason returns a copy with the reason set.
func (r *Refusal) WithReason(reason string) *Refusal {
	c := *r
	c.Reason = reason
	return &c
}

// With returns a copy with one more detail.
func (r *Refusal) With(name string, value any) *Refusal {
	c := *r
	c.Detail = maps.Clone(r.Detail)
	if c.Detail == nil {
		c.Detail = map[string]any{}
	}
	c.Detail[name] = value
	return &c
}

// Of finds the refusal in an error; nil when there is none.
func Of(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}

// Is reports whether err holds a refusal with that code.
func Is(err error, code Code) bool {
	r := Of(err)
	return r != nil && r.Code == code
}
