package wakeshift

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
)

// Codes of errors made by this package; all others are the core's own.
const (
	// CodeUnreachable: the core gave no answer. Status is 0, and the cause, such
	// as a context's error, is found with [errors.Is] and [errors.As].
	CodeUnreachable = "unreachable"
	// CodeBadResponse: what answered is not a core. Usually its address is wrong
	// or a proxy answered in its place.
	CodeBadResponse = "bad_response"
	// CodeBadArguments: an event's arguments do not fit its schema. The core uses
	// this code too.
	CodeBadArguments = "bad_arguments"
	// CodeBadPayload: an event's payload does not fit its schema. The core uses
	// this code too.
	CodeBadPayload = "bad_payload"
	// CodeForbidden: the event's Authorize refused the subscription.
	CodeForbidden = "forbidden"
	// CodeClosed: the [Wakeshift] is closed.
	CodeClosed = "closed"
)

// An Error is a refusal: by the core, or by this package before the core was
// asked. Find it with [errors.As], or use [IsCode].
type Error struct {
	// Status is the HTTP status of the core's answer; 400 or 403 for a refusal by
	// this package, 0 when there was no answer.
	Status int
	// Code says what went wrong, in a word that does not change.
	Code string
	// Message says it for people. It names fields and limits, never values.
	Message string
	// Reason says more where the core does, as with the code callback_failed.
	Reason string

	cause error
}

// ErrClosed is returned by every call after [Wakeshift.Close]. Its code is
// [CodeClosed].
var ErrClosed error = &Error{Code: CodeClosed, Message: "the client is closed"}

// Error describes the refusal.
func (e *Error) Error() string {
	text := "wakeshift: " + e.Code
	if e.Status != 0 {
		text += fmt.Sprintf(" (%d)", e.Status)
	}
	text += ": " + e.Message
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text
}

// Unwrap returns the cause of an error with the code [CodeUnreachable], else nil.
func (e *Error) Unwrap() error { return e.cause }

// IsCode reports whether err is, or wraps, an [*Error] with the given code.
func IsCode(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// A panicError is a panic of one of the app's hooks.
type panicError struct {
	hook  string
	what  string
	stack []byte
}

func (e *panicError) Error() string { return "wakeshift: " + e.hook + " panicked: " + e.what }

// guard calls one of the app's hooks and turns its panic into an error. The MCP
// SDK does not recover panics, so one in a hook would end the process. The
// panic's value may hold a payload: only the runtime's own are shown.
func guard(hook string, call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			what := fmt.Sprintf("a %T", value)
			if e, ok := value.(runtime.Error); ok {
				what = e.Error()
			}
			err = &panicError{hook: hook, what: what, stack: debug.Stack()}
		}
	}()
	return call()
}

// hookFailed logs the failure of one of the app's hooks, with the stack if it
// panicked.
func hookFailed(log *slog.Logger, message string, err error, attrs ...any) {
	attrs = append(attrs, "error", err)
	var p *panicError
	if errors.As(err, &p) {
		attrs = append(attrs, "stack", string(p.stack))
	}
	log.Error(message, attrs...)
}
