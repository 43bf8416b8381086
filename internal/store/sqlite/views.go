package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/group"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
)

// A viewer is a connection for reading, made when it is first used.
type viewer struct {
	session     *session
	q           *queries.Queries
	transaction *transaction
}

// open makes the connection unless there is one.
func (v *viewer) open(ctx context.Context, db *sql.DB) error {
	if v.session != nil {
		return nil
	}
	session, err := newSession(ctx, db)
	if err != nil {
		return err
	}
	if v.q, err = queries.Prepare(ctx, session); err == nil {
		v.transaction, err = prepareTransaction(ctx, session, "DEFERRED")
	}
	if err != nil {
		session.Close()
		return err
	}
	v.session = session
	return nil
}

func (v *viewer) close() error {
	if v.session == nil {
		return nil
	}
	return v.session.Close()
}

// view runs f over the snapshot that there is now, and returns what that may hold.
func (v *viewer) view(w *writer, f func(store.Reader) error) (group.Mark, error) {
	if err := exec(v.transaction.begin); err != nil {
		return 0, fmt.Errorf("begin: %w", fault(err))
	}
	// Nothing was written, and if a failed read has ended the transaction already there is nothing to undo.
	defer func() { _ = exec(v.transaction.rollback) }()
	state, err := v.q.Log(background) // the first read fixes the snapshot
	if err != nil {
		return 0, fmt.Errorf("read the log's state: %w", fault(err))
	}
	mark := w.updates.Mark()
	return mark, f(&reader{q: v.q, tail: w.tail, state: state})
}
