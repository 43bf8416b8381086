package postgres

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rouse-dev/rouse/internal/store/group"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
)

// A writer makes this node's changes, on one connection. It is the [group.Database] of its updates.
type writer struct {
	link   *link
	node   pgtype.UUID
	groups int64 // transactions begun, which number them

	last  queries.Log // the state of the log as of this node's last commit, for which the cache is exact
	cache *cache
	seen  pruneCursor

	// What follows belongs to the transaction that runs.

	reader   *reader
	pending  []pendingOccurrence // appended, not yet written
	keys     *keys
	wrote    bool  // something was changed
	outdates bool  // something that nodes know by heart was
	broken   error // a failure after which it cannot be kept
}

func newWriter(l *link, node pgtype.UUID) *writer {
	return &writer{link: l, node: node, cache: newCache(), keys: newKeys()}
}

// Begin implements [group.Database]. It waits for the right to change something, and for a connection if need be.
func (w *writer) Begin() error {
	conn, fresh, err := w.link.get()
	if err != nil {
		return err
	}
	state, err := begin(conn, writing)
	if err != nil {
		return fault(conn, err)
	}
	if fresh || state.Changes != w.last.Changes || state.Epoch != w.last.Epoch {
		w.cache = newCache()
	}
	w.reader = &reader{conn: conn, q: queries.New(conn), state: state, spoil: func(err error) { w.broken = err }}
	return fault(conn, w.keys.begin(w.reader.q))
}

// Chores implements [group.Database]. There are none.
func (w *writer) Chores(bool) (bool, error) { return false, nil }

// Part implements [group.Database].
func (w *writer) Part() group.Part { return &tx{reader: w.reader, w: w} }

// Commit implements [group.Database]. When the connection breaks before the server's answer it finds out on another one
// whether the transaction was kept.
func (w *writer) Commit() error {
	if !w.wrote {
		rollback(w.reader.conn)
		w.committed()
		return nil
	}
	conn := w.reader.conn
	w.groups++
	p := newPipeline(conn)
	if err := w.finish(p); err != nil {
		return err
	}
	_, _ = p.Exec(background, "COMMIT")
	tag, err := p.send(background)
	switch {
	case err != nil && conn.IsClosed():
		if err := w.settle(err); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("commit: %w", fault(conn, w.keys.refused(err)))
	case tag.String() != "COMMIT":
		return errors.New("commit: the server had given the transaction up")
	}
	w.committed()
	return nil
}

// finish puts off what is left to write: occurrences, the state of the log, and which of this node's transactions it was.
func (w *writer) finish(p *pipeline) error {
	q := queries.New(p)
	if err := w.write(q); err != nil {
		return err
	}
	if w.outdates {
		w.reader.state.Changes++
	}
	if s := w.reader.state; s != w.last || w.outdates {
		_ = q.SetLog(background, queries.SetLogParams{Head: s.Head, Horizon: s.Horizon, Manifests: s.Manifests, Changes: s.Changes,
			Bytes: s.Bytes, Erased: s.Erased, Scrubbed: s.Scrubbed})
	}
	return q.SetDone(background, queries.SetDoneParams{ID: w.node, Done: w.groups, SeenAt: micros(time.Now())})
}

// settle tells by nil that the transaction whose commit got no answer was kept, by [group.ErrAgain] that it was not.
func (w *writer) settle(cause error) error {
	w.cache = newCache() // the server may be another one now
	kept, err := w.link.kept(w.node, w.groups)
	switch {
	case err != nil:
		return fmt.Errorf("commit: %w: %w: %w", group.ErrUnknown, cause, err)
	case !kept:
		return fmt.Errorf("commit: %w: %w", group.ErrAgain, cause)
	}
	return nil
}

// committed takes note that the transaction was kept, or that there was nothing to keep.
func (w *writer) committed() {
	w.last = w.reader.state
	w.keys.reset()
	w.reset()
}

// Rollback implements [group.Database].
func (w *writer) Rollback() {
	if w.link.conn != nil {
		rollback(w.link.conn)
	}
	w.link.abandon()
	w.cache = newCache()
	w.reset()
}

func (w *writer) reset() {
	clear(w.pending) // let go of their payloads
	w.pending = w.pending[:0]
	w.reader, w.broken = nil, nil
	w.wrote, w.outdates = false, false
}

// close lets go of the connection, and of this node's row.
func (w *writer) close() error {
	conn := w.link.conn
	if conn == nil || conn.IsClosed() {
		return nil
	}
	// The row is of no use any more; it is removed later if it is not now.
	_ = queries.New(conn).DeleteNode(background, w.node)
	return conn.Close(background)
}

var _ group.Database = (*writer)(nil)
