package native

import (
	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
)

// Codes of JSON-RPC that mean the same in every dialect.
const (
	invalidParams = -32602
	internalError = -32603
)

// A dialect is what differs between the MCP Events clients in the field.
type dialect struct {
	notFound, forbidden, exhausted, unsupported, callback int
	// forgiving means that unsubscribing what is not there is no error.
	forgiving bool
}

var dialects = map[string]dialect{
	core.DialectDraft:   {notFound: -32023, forbidden: -32024, exhausted: -32025, unsupported: -32026, callback: -32027},
	core.DialectChatGPT: {notFound: -32011, forbidden: -32012, exhausted: -32013, unsupported: -32014, callback: -32015, forgiving: true},
}

// An Error is a JSON-RPC error object.
type Error struct {
	Code    int            `json:"code"`
	Message string         `json:"message"`
	Data    map[string]any `json:"data,omitempty"`
}

// errorOf words a refusal in the dialect. nil means that err is no refusal but a fault, which is not the client's to know.
func (d dialect) errorOf(err error) *Error {
	r := refusal.Of(err)
	if r == nil {
		return nil
	}
	switch r.Code {
	case refusal.UnknownEvent:
		return &Error{d.notFound, r.Message, map[string]any{"kind": "event"}}
	case refusal.UnknownSubscription:
		return &Error{d.notFound, r.Message, map[string]any{"kind": "subscription"}}
	case refusal.Forbidden, refusal.UnknownSession:
		return &Error{d.forbidden, r.Message, nil}
	case refusal.SubscriptionLimit:
		return &Error{d.exhausted, r.Message, map[string]any{"limit": "subscriptions"}}
	case refusal.Unsupported:
		return &Error{d.unsupported, r.Message, map[string]any{"feature": "deliveryMode"}}
	case refusal.CallbackFailed:
		return &Error{d.callback, r.Message, map[string]any{"reason": r.Reason}}
	case refusal.BadRequest, refusal.BadArguments, refusal.BadPayload, refusal.TooLarge:
		return &Error{invalidParams, r.Message, nil}
	}
	return &Error{internalError, r.Message, nil}
}
