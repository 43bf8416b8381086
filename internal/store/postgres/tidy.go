package postgres

import (
	"context"
	"time"

	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
)

const (
	tidyEach = time.Minute
	// forgetAtOnce is how many used-up ids one statement forgets.
	forgetAtOnce = 5000
	// nodeKept is how long the row of a node is kept that no longer writes.
	nodeKept = 24 * time.Hour
)

// tidy removes now and then what nobody needs any more, until the store is closed.
func (s *Store) tidy(closing context.Context) {
	defer close(s.tidied)
	ticker := time.NewTicker(tidyEach)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := s.tidyOnce(closing); err != nil && closing.Err() == nil {
				s.log.Warn("used-up ids could not be removed from the database; it will be tried again", "error", err)
			}
		case <-closing.Done():
			return
		}
	}
}

// tidyOnce forgets ids whose time is over, in steps, and nodes that are gone.
func (s *Store) tidyOnce(ctx context.Context) error {
	conn, err := s.aside.Acquire(ctx)
	if err != nil {
		return unavailable(err)
	}
	defer conn.Release()
	q := queries.New(conn)
	for forgotten := int64(forgetAtOnce); forgotten == forgetAtOnce && ctx.Err() == nil; {
		forgotten, err = q.ForgetSpent(ctx, queries.ForgetSpentParams{Now: time.Now().Unix() / 60, Max: forgetAtOnce})
		if err != nil {
			return fault(conn.Conn(), err)
		}
	}
	return fault(conn.Conn(), q.DeleteNodesSeenBefore(ctx, micros(time.Now().Add(-nodeKept))))
}
