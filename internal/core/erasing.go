package core

import (
	"context"
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// written is what is kept of an occurrence: nothing but the fact, when its content is to go with its delivery and nobody is
// there to receive it.
func written(o wake.Occurrence) wake.Occurrence {
	if o.Fleeting && o.Matched == 0 {
		return o.Erased()
	}
	return o
}

const (
	// scrubAfter is how long erased content may stay in the database's files, so that many erasures share a scrubbing.
	scrubAfter = 2 * time.Second
	// scrubRest is how many times as long as the last scrubbing took the next one waits at least: it may read the whole
	// database, and is not to do so all the time.
	scrubRest = 9
)

// hintScrub says that content may have been erased.
func (c *Core) hintScrub() {
	select {
	case c.erased <- struct{}{}:
	default:
	}
}

// scrubErased has what was erased leave the database's files, until ctx ends. What failed, the sweep's hint has it try again.
func (c *Core) scrubErased(ctx context.Context) {
	for wait := scrubAfter; ; {
		select {
		case <-ctx.Done():
			return
		case <-c.erased:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		begun := time.Now()
		if err := c.Scrub(ctx); err != nil && ctx.Err() == nil {
			c.log.Error("erased content could not be scrubbed from the database's files; it is tried again in a minute", "error", err)
		}
		wait = max(scrubAfter, scrubRest*time.Since(begun))
	}
}

// Scrub returns once what was erased before it was called (content that was to be deleted on delivery, users that were
// forgotten) is in none of the database's files. The core does it by itself, soon after each erasure; without any it does nothing.
func (c *Core) Scrub(ctx context.Context) error {
	var erasures store.Erasures
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		erasures, err = r.Erasures()
		return err
	})
	if err != nil || erasures.Made == erasures.Scrubbed {
		return err
	}
	if err := c.store.Scrub(ctx); err != nil {
		return fmt.Errorf("scrubbing the database: %w", err)
	}
	return c.store.Update(ctx, func(tx store.Tx) error { return tx.NoteScrubbed(erasures.Made) })
}
