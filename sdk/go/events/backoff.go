package events

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// The waits between attempts double from the first to the last.
const (
	firstWait = time.Second
	lastWait  = 30 * time.Second
)

// A backoff says how long to wait after a failure. The zero value is ready.
type backoff struct {
	last time.Duration
}

// wait is the next wait, somewhere in the upper half of its time so that many
// clients do not come back at once. A server that names a time gets it.
func (b *backoff) wait(failure error) time.Duration {
	b.last = min(max(2*b.last, firstWait), lastWait)
	wait := b.last/2 + rand.N(b.last/2)
	if status, ok := errors.AsType[*HTTPError](failure); ok {
		wait = max(wait, status.RetryAfter)
	}
	return wait
}

func (b *backoff) reset() { b.last = 0 }

// sleep waits, and says whether it did so to the end.
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
