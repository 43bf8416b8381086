package wakeshift

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	defaultEvery   = 5 * time.Second
	minEvery       = 10 * time.Millisecond
	defaultTimeout = time.Hour
	// maxBackoff is the longest wait after a failure, unless Every is longer.
	maxBackoff = time.Minute
	// emitPatience is how long a found occurrence is emitted for at least, however
	// little was left of the watch's time.
	emitPatience = time.Minute
	// maxWatches bounds the watches of one Wakeshift.
	maxWatches = 10_000
	// closePatience is how long Close waits for running checks.
	closePatience = 5 * time.Second
)

// WatchOptions configure [Event.Watch]. The zero value is usable.
type WatchOptions struct {
	// Every is the time between two checks; 0 means 5 seconds, the least is 10
	// milliseconds.
	Every time.Duration
	// Timeout ends the watch when nothing was found for so long; 0 means an hour.
	Timeout time.Duration
	// To names the user a personal event is for, as [To] does.
	To string
}

// Watch polls for something that cannot announce itself. It calls check at once
// and then every [WatchOptions].Every until check returns a payload, and emits
// the event with it, once. A nil payload means not yet. An error or a panic of
// check, or an emit that fails for now, is logged and tried again, after waits
// that double up to a minute.
//
// There is one watch at a time for an event, arguments and To: while it runs
// another call does nothing and returns nil, so a tool may call Watch whenever it
// subscribes someone. A watch ends with its emit, its Timeout, or
// [Wakeshift.Close], which cancels the context of check; it does not survive the
// process. The error says that the arguments do not fit (code bad_arguments), that
// too many watches run (10,000), or that the Wakeshift is closed.
func (e *Event[Args, Payload]) Watch(args Args, check func(context.Context) (*Payload, error), opts WatchOptions) error {
	if check == nil {
		return errors.New("wakeshift: Watch needs a check")
	}
	if err := e.event.checkRecipient(opts.To); err != nil {
		return err
	}
	arguments, err := e.event.encodeArguments(args)
	if err != nil {
		return err
	}
	if opts.Every == 0 {
		opts.Every = defaultEvery
	}
	if opts.Timeout == 0 {
		opts.Timeout = defaultTimeout
	}
	opts.Every = max(opts.Every, minEvery)
	key := watchKey{event: e.event.name, to: opts.To, arguments: string(arguments)}
	return e.event.wake.watches.start(key, func(ctx context.Context) { e.watch(ctx, args, check, opts) })
}

// watch is the life of one watch.
func (e *Event[Args, Payload]) watch(ctx context.Context, args Args, check func(context.Context) (*Payload, error), opts WatchOptions) {
	end := time.Now().Add(opts.Timeout)
	payload := e.await(ctx, check, opts, end)
	if payload == nil {
		return
	}
	if least := time.Now().Add(emitPatience); end.Before(least) {
		end = least
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	options := []EmitOption{ID(newOccurrenceID()), To(opts.To)}
	for failures := 0; ; failures++ {
		_, err := e.Emit(ctx, args, *payload, options...)
		if err == nil || ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
			return
		}
		if !temporary(err) || !sleep(ctx, backoff(opts.Every, failures)) {
			e.event.wake.log.Error("a watch found its event, but the emit failed", "event", e.event.name, "error", err)
			return
		}
		e.event.wake.log.Warn("the emit of a watch failed and is tried again", "event", e.event.name, "error", err)
	}
}

// await checks until there is a payload, and returns nil when there was none in
// time or the watch was stopped.
func (e *Event[Args, Payload]) await(ctx context.Context, check func(context.Context) (*Payload, error), opts WatchOptions, end time.Time) *Payload {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	for failures := 0; ctx.Err() == nil; {
		var payload *Payload
		err := guard("the check of "+e.event.name, func() (err error) {
			payload, err = check(ctx)
			return err
		})
		wait := opts.Every
		switch {
		case err != nil && ctx.Err() == nil:
			hookFailed(e.event.wake.log, "the check of a watch failed and is tried again", err, "event", e.event.name)
			wait = backoff(opts.Every, failures)
			failures++
		case err == nil && payload != nil:
			return payload
		default:
			failures = 0
		}
		sleep(ctx, wait)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.event.wake.log.Info("a watch ended without its event", "event", e.event.name, "timeout", opts.Timeout)
	}
	return nil
}

// backoff is the wait after the given number of earlier failures in a row.
func backoff(every time.Duration, failures int) time.Duration {
	wait := every
	for range failures {
		if wait *= 2; wait >= maxBackoff {
			return max(maxBackoff, every)
		}
	}
	return wait
}

// temporary reports whether the same emit may succeed later.
func temporary(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false // a panic of Text, or JSON that cannot be written
	}
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return e.Code != CodeClosed && (e.Status < 400 || e.Status >= 500)
}

// watches are the running watches of a Wakeshift.
type watches struct {
	ctx  context.Context
	stop context.CancelFunc

	mu      sync.Mutex
	running map[watchKey]struct{}
	closed  bool
	all     sync.WaitGroup
}

type watchKey struct{ event, to, arguments string }

func newWatches() *watches {
	ctx, stop := context.WithCancel(context.Background())
	return &watches{ctx: ctx, stop: stop, running: map[watchKey]struct{}{}}
}

// start runs a watch unless one with its key runs already.
func (w *watches) start(key watchKey, watch func(context.Context)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	if _, ok := w.running[key]; ok {
		return nil
	}
	if len(w.running) >= maxWatches {
		return fmt.Errorf("wakeshift: %d watches are running, which is the limit", maxWatches)
	}
	w.running[key] = struct{}{}
	w.all.Go(func() {
		defer func() {
			w.mu.Lock()
			delete(w.running, key)
			w.mu.Unlock()
		}()
		watch(w.ctx)
	})
	return nil
}

// close stops all watches and returns how many did not end in closePatience.
func (w *watches) close() int {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.stop()
	ended := make(chan struct{})
	go func() {
		w.all.Wait()
		close(ended)
	}()
	timer := time.NewTimer(closePatience)
	defer timer.Stop()
	select {
	case <-ended:
		return 0
	case <-timer.C:
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.running)
	}
}
