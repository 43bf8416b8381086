package wakeshift

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	// maxRetryAfter is the longest wait a core can ask for with Retry-After. A
	// longer one is left to the caller, who is waiting.
	maxRetryAfter  = 5 * time.Second
	hurriedTimeout = 2 * time.Second
)

// retryPauses are the waits before the second and the third, last attempt.
var retryPauses = []time.Duration{250 * time.Millisecond, time.Second}

// A failure is an attempt that did not succeed, and what is known of it.
type failure struct {
	err        *Error
	cause      error  // why there was no answer
	answered   bool   // there was an answer
	status     int    // its HTTP status, unless 2xx
	foreign    bool   // it does not come from a core: a proxy's page
	retryAfter string // its Retry-After header
}

// pause says whether to try again after the given attempt (the first is 0), and
// after which wait.
func (f *failure) pause(r coreRequest, attempt int) (time.Duration, bool) {
	if r.hurried || attempt >= len(retryPauses) {
		return 0, false
	}
	pause := jitter(retryPauses[attempt])
	switch {
	case !f.answered:
		// A connection that was never made carried nothing to the core. After a
		// timeout the caller has waited long enough.
		return pause, neverSent(f.cause) || r.repeatable && !errors.Is(f.cause, context.DeadlineExceeded)
	case f.status == http.StatusTooManyRequests, f.status == http.StatusServiceUnavailable:
		return f.asked(pause, r)
	case f.foreign && f.status >= 500:
		return pause, r.repeatable
	}
	return 0, false
}

// asked is the wait that Retry-After names. Both statuses mean the request was
// not worked on, so that anything may be sent again.
func (f *failure) asked(pause time.Duration, r coreRequest) (time.Duration, bool) {
	if f.retryAfter == "" {
		return pause, f.foreign && r.repeatable
	}
	wait, ok := parseRetryAfter(f.retryAfter, time.Now())
	return max(wait, pause), ok && wait <= maxRetryAfter
}

// parseRetryAfter reads the header's two forms: seconds, or a date.
func parseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now)), true
	}
	return 0, false
}

// neverSent reports whether the connection failed before anything was written.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && !op.Timeout()
}

// jitter spreads a wait by a quarter, so that many callers do not come back at
// once.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2)
}

// sleep waits; false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
