package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// What a server's refusal means, whichever set of codes the server speaks: test
// with [errors.Is]; the details are in the [*Error].
var (
	// ErrNotFound: there is no event of that name (any more), or no such
	// subscription. List again, and subscribe to what there is.
	ErrNotFound = errors.New("not found")
	// ErrForbidden: it is not for this user, or no longer.
	ErrForbidden = errors.New("forbidden")
	// ErrResourceExhausted: a limit or quota of the server.
	ErrResourceExhausted = errors.New("resource exhausted")
	// ErrUnsupported: the server does not offer what was asked for, or the event's
	// schema has changed. List again, and subscribe anew.
	ErrUnsupported = errors.New("unsupported")
	// ErrCallbackEndpoint: the server could not reach or verify the receiver.
	ErrCallbackEndpoint = errors.New("callback endpoint failed")
	// ErrInvalidParams: the arguments do not fit the event, or another parameter is
	// no good.
	ErrInvalidParams = errors.New("invalid params")
	// ErrNotOffered: the server does not advertise MCP Events, or answers that it
	// does not know their methods.
	ErrNotOffered = errors.New("the server offers no MCP Events")
)

// What does not come from the server.
var (
	// ErrNoCompatibleDeliveryMode: the event is delivered in no way that this
	// client can receive. A webhook needs a [Receiver].
	ErrNoCompatibleDeliveryMode = errors.New("events: no compatible delivery mode")
	// ErrClosed: the client, the subscription or the connection is closed.
	ErrClosed = errors.New("events: closed")
	// ErrInUse: the same subscription is live in this client already, or is being
	// iterated over elsewhere.
	ErrInUse = errors.New("events: the subscription is in use")
)

// The codes of the base protocol.
const (
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeHeaderMismatch = -32020
	codeCapability     = -32021
	codeVersion        = -32022
)

// kinds are the meanings of codes. There are two sets of codes in use, that of
// the extension's draft and that of the sketch before it.
var kinds = map[int]error{
	codeMethodNotFound: ErrNotOffered,
	codeInvalidParams:  ErrInvalidParams,
	-32023:             ErrNotFound,
	-32024:             ErrForbidden,
	-32025:             ErrResourceExhausted,
	-32026:             ErrUnsupported,
	-32027:             ErrCallbackEndpoint,
	-32011:             ErrNotFound,
	-32012:             ErrForbidden,
	-32013:             ErrResourceExhausted,
	-32014:             ErrUnsupported,
	-32015:             ErrCallbackEndpoint,
}

// An Error is a server's refusal as it came over the wire.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"` // nil if there was none
}

// Error has the code and the server's words, shortened.
func (e *Error) Error() string {
	kind := "refused"
	if k := kinds[e.Code]; k != nil {
		kind = k.Error()
	}
	return fmt.Sprintf("events: %s (%d): %s", kind, e.Code, shorten(e.Message))
}

// Is makes the sentinels work with errors.Is.
func (e *Error) Is(target error) bool {
	kind := kinds[e.Code]
	return kind != nil && kind == target
}

// An HTTPError is an answer over HTTP that is no JSON-RPC message.
type HTTPError struct {
	Status int
	// RetryAfter is how long the server asked to wait; 0 if it did not.
	RetryAfter time.Duration
}

// Error says the status.
func (e *HTTPError) Error() string {
	return fmt.Sprintf("events: the server answered %d %s", e.Status, http.StatusText(e.Status))
}

// isLasting says that trying the same again cannot help.
func isLasting(err error) bool {
	if wire, ok := errors.AsType[*Error](err); ok {
		switch wire.Code {
		case codeInvalidRequest, codeHeaderMismatch, codeCapability, codeVersion:
			return true
		}
		switch kinds[wire.Code] {
		case ErrNotFound, ErrForbidden, ErrUnsupported, ErrInvalidParams, ErrNotOffered:
			return true
		}
		return false
	}
	if status, ok := errors.AsType[*HTTPError](err); ok {
		return status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden
	}
	return errors.Is(err, ErrClosed)
}

// isOutdated says that what is known of the event no longer holds, a saved
// cursor included.
func isOutdated(err error) bool { return errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnsupported) }

const mostWords = 300

// shorten keeps what a server says to a line of a bearable length.
func shorten(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == ' ' }), " ")
	if runes := []rune(text); len(runes) > mostWords {
		return string(runes[:mostWords]) + "…"
	}
	return text
}
