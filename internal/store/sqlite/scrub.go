package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
)

// A scrubber lets one Scrub work at a time, and those who came before it began share it.
type scrubber struct {
	turn  chan struct{} // holds one while nobody works
	begun atomic.Int64  // how many have begun; changed in turn
	done  int64         // the last of them that succeeded; belongs to whose turn it is
}

func newScrubber() *scrubber {
	s := &scrubber{turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

// run has scrub done, by another call if that began later than this one.
func (s *scrubber) run(ctx context.Context, closing <-chan struct{}, scrub func() error) error {
	before := s.begun.Load()
	select {
	case <-s.turn:
	case <-closing:
		return store.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { s.turn <- struct{}{} }()
	if s.done > before {
		return nil
	}
	own := s.begun.Add(1)
	err := scrub()
	if err == nil {
		s.done = own
	}
	return err
}

// close waits for the end of a scrub that runs, and lets none begin.
func (s *scrubber) close() { <-s.turn }

// While a view reads from the write-ahead log it cannot be emptied. Updates do not wait for that: it is tried again.
const (
	scrubAgain     = 5 * time.Millisecond
	scrubAgainMost = time.Second
)

// Scrub implements [store.Store]. What is removed is overwritten in its page at once (secure_delete), but where rows were
// moved from one page to another, what was left behind is not: that is wiped here, which reads the whole database. The pages
// as they were before are in the database's file until the write-ahead log is brought into it, and in that log until it is
// emptied. The end of ctx ends it between two steps.
func (s *Store) Scrub(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.scrubber.run(ctx, s.closing, func() error { return s.scrub(ctx) })
}

func (s *Store) scrub(ctx context.Context) error {
	if err := s.wipe(ctx); err != nil {
		return err
	}
	return s.emptyWAL(ctx)
}

// emptyWAL has the write-ahead log brought into the database and emptied.
func (s *Store) emptyWAL(ctx context.Context) error {
	for wait := scrubAgain; ; wait = min(2*wait, scrubAgainMost) {
		// Most of it is done beside the writer, which then need not stop for long.
		if _, err := s.checkpointer.db.ExecContext(background, checkpoint); err != nil {
			return fmt.Errorf("bring the write-ahead log into the database: %w", fault(err))
		}
		emptied := false
		err := s.writer.updates.Between(ctx, func() (err error) {
			emptied, err = s.writer.emptyWAL()
			return err
		})
		if err != nil || emptied {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closing:
			return s.ready(ctx)
		}
	}
}

// How long the writer waits for a lock: always, and while it empties the write-ahead log, in milliseconds.
const (
	patient   = "PRAGMA busy_timeout = 5000"
	impatient = "PRAGMA busy_timeout = 5"
)

// emptyWAL brings what is left of the write-ahead log into the database and makes its file empty. It reports false when a
// view still reads from it.
func (w *writer) emptyWAL() (emptied bool, err error) {
	if _, err := w.session.ExecContext(background, impatient); err != nil {
		return false, fault(err)
	}
	var busy, pages, written int64
	err = w.session.QueryRowContext(background, truncate).Scan(&busy, &pages, &written)
	_, again := w.session.ExecContext(background, patient)
	if err := errors.Join(fault(err), fault(again)); err != nil {
		return false, fmt.Errorf("empty the write-ahead log: %w", err)
	}
	return busy == 0, nil
}
