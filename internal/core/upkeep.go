package core

import (
	"context"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
)

// A Problem is something wrong that Check found.
type Problem = store.Problem

// Check looks through the whole database for damage, while it is used. Without problems all is well.
func (c *Core) Check(ctx context.Context) ([]Problem, error) { return c.store.Check(ctx) }

// Backup writes a copy of the database to a new file at that path and returns when it is on disk. The refusal Unsupported says
// that the database is a server's, which has tools for it.
func (c *Core) Backup(ctx context.Context, path string) error {
	copier, ok := c.store.(store.Copier)
	if !ok {
		return refusal.New(refusal.Unsupported, "this core's database is a PostgreSQL server's: back it up with pg_dump, and restore it with pg_restore")
	}
	return fault(copier.Copy(ctx, path))
}
