package sqlite

import (
	"context"
	"fmt"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
)

// A viewer is a connection for reading, with its statements prepared.
type viewer struct {
	q           *queries.Queries
	transaction *transaction
}

func newViewer(ctx context.Context, conn *session) (*viewer, error) {
	q, err := queries.Prepare(ctx, conn)
	if err != nil {
		return nil, err
	}
	t, err := prepareTransaction(ctx, conn, "DEFERRED")
	return &viewer{q, t}, err
}

// view runs f over the snapshot that there is now.
func (v *viewer) view(tail *tail, f func(store.Reader) error) error {
	if err := run(v.transaction.begin); err != nil {
		return fmt.Errorf("begin: %w", fault(err))
	}
	// Nothing was written, and if a failed read has ended the transaction already there is nothing to undo.
	defer func() { _ = run(v.transaction.rollback) }()
	state, err := v.q.Log(background) // the first read fixes the snapshot
	if err != nil {
		return fmt.Errorf("read the log's state: %w", fault(err))
	}
	return f(&reader{q: v.q, tail: tail, state: state})
}
