package core

import (
	"cmp"

	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

// The names of the dialects of MCP Events in the field.
const (
	DialectDraft   = "draft"
	DialectChatGPT = "chatgpt"
	DialectFinal   = "final"
)

// A Dialect is what differs between the MCP Events clients in the field. The table of them is here and nowhere else. That results
// have a resultType, and that a request's Mcp-Name header must name its event where it is sent, goes by the revision of MCP and by
// the transport, whatever the dialect: both are with the SDK, which speaks these.
type Dialect struct {
	Name string
	// The JSON-RPC codes.
	NotFound, Forbidden, Exhausted, Unsupported, Callback int
	// MessageID says that the webhook-id of an event is an id of the message, and not the eventId.
	MessageID bool
	// Forgiving means that unsubscribing what is not there is no error.
	Forgiving bool
}

var dialects = []Dialect{
	{Name: DialectDraft, NotFound: -32023, Forbidden: -32024, Exhausted: -32025, Unsupported: -32026, Callback: -32027},
	{Name: DialectChatGPT, NotFound: -32011, Forbidden: -32012, Exhausted: -32013, Unsupported: -32014, Callback: -32015, Forgiving: true},
	{Name: DialectFinal, NotFound: -32023, Forbidden: -32024, Exhausted: -32025, Unsupported: -32026, Callback: -32027, MessageID: true},
}

// DialectNamed is the dialect of that name; ok is false, and the draft's given, when there is none.
func DialectNamed(name string) (d Dialect, ok bool) {
	for _, d := range dialects {
		if d.Name == name {
			return d, true
		}
	}
	return dialects[0], false
}

// DialectOf is the dialect that a caller speaks, as far as its name tells.
func DialectOf(call wake.Call) Dialect {
	name := DialectDraft
	if harness.Recognise(call).Harness == harness.ChatGPT {
		name = DialectChatGPT
	}
	d, _ := DialectNamed(name)
	return d
}

// Codes of JSON-RPC that mean the same in every dialect.
const (
	invalidParams = -32602
	internalError = -32603
)

// A WireError is a JSON-RPC error object.
type WireError struct {
	Code    int            `json:"code"`
	Message string         `json:"message"`
	Data    map[string]any `json:"data,omitempty"`
}

// ErrorOf words a refusal in the dialect. nil means that err is no refusal but a fault, which is not the client's to know.
func (d Dialect) ErrorOf(err error) *WireError {
	r := refusal.Of(err)
	if r == nil {
		return nil
	}
	switch r.Code {
	case refusal.UnknownEvent:
		return &WireError{d.NotFound, r.Message, detail(r, "kind", "event")}
	case refusal.UnknownSubscription:
		return &WireError{d.NotFound, r.Message, detail(r, "kind", "subscription")}
	case refusal.Forbidden, refusal.UnknownSession:
		return &WireError{d.Forbidden, r.Message, detail(r, "reason", r.Reason)}
	case refusal.SubscriptionLimit:
		return &WireError{d.Exhausted, r.Message, detail(r, "limit", "subscriptions")}
	case refusal.RateLimited:
		return &WireError{d.Exhausted, r.Message, detail(r, "limit", cmp.Or(r.Reason, "requests"))}
	case refusal.Unsupported:
		return &WireError{d.Unsupported, r.Message, detail(r, "feature", "deliveryMode")}
	case refusal.CallbackFailed:
		return &WireError{d.Callback, r.Message, detail(r, "reason", r.Reason)}
	case refusal.BadRequest, refusal.BadArguments, refusal.BadPayload, refusal.TooLarge:
		return &WireError{invalidParams, r.Message, r.Detail}
	}
	return &WireError{internalError, r.Message, nil}
}

// detail is the refusal's own, with what its code says anyway; an empty value says nothing.
func detail(r *refusal.Refusal, name, value string) map[string]any {
	if _, own := r.Detail[name]; own || value == "" {
		return r.Detail
	}
	return r.With(name, value).Detail
}

// Fault is the error of a request that failed by no fault of its client; the core's log says why.
func Fault() *WireError {
	return &WireError{internalError, "the core failed; trying again later may help", nil}
}
