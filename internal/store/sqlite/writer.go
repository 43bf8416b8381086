package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/internal/store/group"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

// When the topic index is written: at so many entries, or when the first has waited so long and there is a commit anyway.
const (
	indexAtPlaces = 4096
	indexAtAge    = time.Second
)

// A writer makes every change, on one connection and in one goroutine at a time, that of updates.
type writer struct {
	session      *session
	q            *queries.Queries
	transaction  *transaction
	occurrences  *bulk
	runs         *bulk
	checkpointer *checkpointer

	updates *group.Writer
	tail    *tail
	spent   *spent
	reader  *reader // of the transaction that runs

	committed queries.Log // the state of the log as of the last commit
	cache     *cache
	seen      pruneCursor

	// What follows belongs to the transaction that runs.

	pending []pendingOccurrence // appended, not yet written
	keys    *keys
	unsaved map[int64][]byte // used-up ids it saves
	broken  error            // a failure after which it cannot be kept
}

func newWriter(ctx context.Context, session *session, c *checkpointer) (*writer, error) {
	w := &writer{session: session, checkpointer: c, cache: newCache(), keys: newKeys()}
	w.spent = newSpent(func() { w.updates.WakeForChores() })
	var err error
	if w.q, err = queries.Prepare(ctx, session); err != nil {
		return nil, err
	}
	if w.transaction, err = prepareTransaction(ctx, session, "IMMEDIATE"); err != nil {
		return nil, err
	}
	if w.occurrences, err = prepareBulk(ctx, session, insertOccurrence, occurrenceValues); err != nil {
		return nil, err
	}
	if w.runs, err = prepareBulk(ctx, session, insertRun, runValues); err != nil {
		return nil, err
	}
	if err := w.load(); err != nil {
		return nil, err
	}
	w.reader = &reader{q: w.q, tail: w.tail, state: w.committed, spoil: func(err error) { w.broken = err }}
	return w, nil
}

// load reads the state that is kept in memory.
func (w *writer) load() error {
	var err error
	if w.committed, err = w.q.Log(background); err != nil {
		return fmt.Errorf("read the log's state: %w", fault(err))
	}
	w.tail = newTail(wake.Seq(w.committed.Indexed))
	err = eachTopics(w.q, wake.Seq(w.committed.Indexed), wake.Seq(w.committed.Head), func(row queries.TopicsBetweenRow) bool {
		w.tail.add(row.App, splitTopics(row.Topics), wake.Seq(row.Seq))
		return true
	})
	if err != nil {
		return fmt.Errorf("read the end of the log: %w", fault(err))
	}
	if err := w.spent.load(w.q); err != nil {
		return fmt.Errorf("read used-up ids: %w", err)
	}
	return nil
}

// Begin implements [group.Database].
func (w *writer) Begin() error {
	clear(w.keys.appended)
	err := exec(w.transaction.begin)
	if err == nil {
		return nil
	}
	_ = exec(w.transaction.rollback) // fails when there is none, and then the first error stands
	return fault(exec(w.transaction.begin))
}

// Part implements [group.Database].
func (w *writer) Part() group.Part { return &tx{reader: w.reader, w: w} }

// Wrote implements [group.Part].
func (t *tx) Wrote() bool { return t.wrote }

// Broken implements [group.Part].
func (t *tx) Broken() error { return t.w.broken }

// Commit implements [group.Database]. It writes what is pending and the state of the log first. What it commits is not yet
// on the disk: see type wal.
func (w *writer) Commit() error {
	if err := w.flush(); err != nil {
		return err
	}
	if w.reader.state != w.committed {
		s := queries.SetLogParams{Head: w.reader.state.Head, Horizon: w.reader.state.Horizon, Indexed: w.reader.state.Indexed}
		if err := w.q.SetLog(background, s); err != nil {
			return fmt.Errorf("write the log's state: %w", fault(err))
		}
	}
	if err := exec(w.transaction.commit); err != nil {
		return fmt.Errorf("commit: %w", fault(err))
	}
	if w.reader.state.Indexed != w.committed.Indexed {
		w.tail.cutThrough(wake.Seq(w.reader.state.Indexed))
	}
	w.committed = w.reader.state
	w.keys.kept()
	w.unsaved = nil
	w.checkpointer.note()
	return nil
}

// Rollback implements [group.Database].
func (w *writer) Rollback() {
	// The failure may have ended the transaction already; then there is nothing to roll back, and the error says so.
	_ = exec(w.transaction.rollback)
	w.tail.cutAfter(wake.Seq(w.committed.Head))
	w.reader.state = w.committed
	w.pending = w.pending[:0]
	w.spent.giveBack(w.unsaved)
	w.unsaved = nil
	w.broken = nil
	w.cache = newCache()
}

// flush writes the pending occurrences.
func (w *writer) flush() error {
	err := w.occurrences.insert(len(w.pending), func(args []any, row int) []any { return w.pending[row].values(args) })
	if err != nil {
		w.broken = fmt.Errorf("write occurrences: %w", fault(w.keys.refused(err)))
		return w.broken
	}
	clear(w.pending) // let go of their payloads
	w.pending = w.pending[:0]
	return nil
}

// Chores implements [group.Database]. It saves used-up ids, and writes the topic index when that is due, or so that the next
// process has less to read.
func (w *writer) Chores(last bool) (wrote bool, err error) {
	if w.unsaved = w.spent.take(); len(w.unsaved) > 0 {
		wrote = true
		if err := w.spent.save(w.q, w.unsaved); err != nil {
			return wrote, fmt.Errorf("save used-up ids: %w", fault(err))
		}
	}
	if last || w.tail.ripe(time.Now(), indexAtPlaces, indexAtAge) {
		return true, w.index()
	}
	return wrote, nil
}

// index writes what is only in the tail to the topic index, in the index's order.
func (w *writer) index() error {
	runs := w.tail.runs(wake.Seq(w.reader.state.Indexed))
	err := w.runs.insert(len(runs), func(args []any, row int) []any {
		r := runs[row]
		return append(args, r.app, r.topic, int64(r.last()), orNull(r.earlier()))
	})
	if err != nil {
		w.broken = fmt.Errorf("write the topic index: %w", fault(err))
		return w.broken
	}
	w.reader.state.Indexed = w.reader.state.Head
	return nil
}
