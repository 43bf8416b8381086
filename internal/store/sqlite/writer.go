package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

// When the topic index is written: at so many entries, or when the first has waited so long and there is a commit anyway.
const (
	indexAtPlaces = 4096
	indexAtAge    = time.Second
)

// A writer makes every change, on one connection and in one goroutine.
type writer struct {
	session     *session
	q           *queries.Queries
	transaction *transaction
	occurrences *bulk
	runs        *bulk
	log         *slog.Logger

	checkpointer *checkpointer

	queue  *queue
	tail   *tail
	spent  *spent
	reader *reader       // of the transaction that runs
	done   chan struct{} // closed when the writer has ended

	committed queries.Log // the state of the log as of the last commit
	cache     *cache
	seen      pruneCursor

	complained bool // of what could not be done later either

	// What follows belongs to the transaction that runs.

	pending []pendingOccurrence // appended, not yet written
	unsaved map[int64][]byte    // used-up ids it saves
	broken  error               // a failure after which it cannot be kept
	running *job

	todo []group // what was taken from the queue and not yet answered, the next one last
}

// A group is jobs that share a transaction, and whether what was left for later is done in it too.
type group struct {
	jobs   []*job
	chores bool
}

func newWriter(ctx context.Context, session *session, c *checkpointer, log *slog.Logger) (*writer, error) {
	w := &writer{session: session, checkpointer: c, log: log, queue: newQueue(), cache: newCache(), done: make(chan struct{})}
	w.spent = newSpent(w.queue.wakeForChores)
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

// run serves the queue until it is closed and empty, then writes what was left for later.
func (w *writer) run() {
	ended := false
	defer func() {
		if !ended {
			w.outlive()
		}
	}()
	for open := true; open; {
		w.work()
		var jobs []*job
		jobs, open = w.queue.take()
		w.todo = append(w.todo, group{jobs, open})
	}
	w.spent.stop()
	if err := w.finish(); err != nil {
		w.log.Warn("the database was closed with its topic index or used-up ids unsaved", "error", err)
	}
	ended = true
	close(w.done)
}

// outlive goes on in a new goroutine after a job ended the writer's, as testing.T.FailNow does. That job is answered, and
// the others of its group are run again.
func (w *writer) outlive() {
	w.undo()
	w.running.exited = true
	answer(w.running)
	last := &w.todo[len(w.todo)-1]
	last.jobs = slices.DeleteFunc(last.jobs, func(j *job) bool { return j == w.running })
	last.chores = false
	go w.run()
}

// work does what is to do.
func (w *writer) work() {
	for len(w.todo) > 0 {
		last := len(w.todo) - 1
		g := w.todo[last]
		failed, err := w.attempt(g)
		w.todo = w.todo[:last]
		if err == nil {
			w.complained = w.complained && !g.chores
			for _, j := range g.jobs {
				answer(j)
			}
			continue
		}
		w.divide(g, failed, err)
	}
}

// divide deals with a group of whose transaction nothing was kept. A single job has its answer. The jobs before and after
// the one that failed are tried again without it; when it was none of them, each is tried for itself.
func (w *writer) divide(g group, failed int, err error) {
	switch {
	case g.chores && failed < 0:
		w.complain(err)
		w.todo = append(w.todo, group{jobs: g.jobs})
	case len(g.jobs) == 1:
		g.jobs[0].err = err
		answer(g.jobs[0])
	case failed >= 0:
		w.todo = append(w.todo, group{jobs: g.jobs[failed+1:]}, group{jobs: g.jobs[failed : failed+1]}, group{jobs: g.jobs[:failed]})
	default:
		for _, j := range slices.Backward(g.jobs) {
			w.todo = append(w.todo, group{jobs: []*job{j}})
		}
	}
}

// complain logs that what was left for later could not be done, once until it can.
func (w *writer) complain(err error) {
	if !w.complained {
		w.log.Warn("used-up ids or the topic index could not be saved; it will be tried again", "error", err)
	}
	w.complained = true
}

func answer(j *job) { close(j.done) }

// attempt runs a group in one transaction. On an error nothing of it is kept; failed is the job that caused it, or -1. A
// job that failed before it wrote anything has its error and does not disturb the others.
func (w *writer) attempt(g group) (failed int, err error) {
	if len(g.jobs) == 0 && !g.chores {
		return -1, nil
	}
	defer func() {
		if err != nil {
			w.undo()
		}
	}()
	if err := w.begin(); err != nil {
		return -1, fmt.Errorf("begin: %w", fault(err))
	}
	if g.chores {
		if err := w.doChores(); err != nil {
			return -1, err
		}
	}
	for i, j := range g.jobs {
		if err := w.do(j); err != nil {
			return i, err
		}
	}
	return -1, w.end()
}

// begin starts a transaction, if need be after ending one that an earlier failure left open.
func (w *writer) begin() error {
	err := exec(w.transaction.begin)
	if err == nil {
		return nil
	}
	_ = exec(w.transaction.rollback) // fails when there is none, and then the first error stands
	return exec(w.transaction.begin)
}

// do runs one job in the transaction. The error it returns is one that spoils the transaction.
func (w *writer) do(j *job) error {
	w.running = j
	t := &tx{reader: w.reader, w: w}
	j.panicked, j.err = protect(j.f, t)
	switch {
	case j.err == nil:
		return w.broken
	case w.broken != nil, t.wrote, j.panicked != nil:
		return j.err
	}
	return nil
}

// A panicError carries a panic to the goroutine whose Update it was.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

var errPanicked = errors.New("the transaction's function panicked")

// protect runs f and catches its panic.
func protect(f func(store.Tx) error, t *tx) (panicked *panicError, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		// Neither a return nor a panic is the end of the goroutine: see outlive.
		if value := recover(); value != nil {
			panicked, err = &panicError{value, debug.Stack()}, errPanicked
		}
	}()
	err = f(t)
	returned = true
	return nil, err
}

// end writes what is pending and the state of the log, and commits.
func (w *writer) end() error {
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
	w.unsaved = nil
	w.checkpointer.note()
	return nil
}

// undo rolls the transaction back, and memory with it.
func (w *writer) undo() {
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
		w.broken = fmt.Errorf("write occurrences: %w", fault(err))
		return w.broken
	}
	clear(w.pending) // let go of their payloads
	w.pending = w.pending[:0]
	return nil
}

// doChores does what was left for later: it saves used-up ids, and writes the topic index when that is due.
func (w *writer) doChores() error {
	if w.unsaved = w.spent.take(); len(w.unsaved) > 0 {
		if err := w.spent.save(w.q, w.unsaved); err != nil {
			return fmt.Errorf("save used-up ids: %w", fault(err))
		}
	}
	if w.tail.ripe(time.Now(), indexAtPlaces, indexAtAge) {
		return w.index()
	}
	return nil
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

// finish writes what was left for later, so that the next process has less to read.
func (w *writer) finish() error {
	index := &job{f: func(store.Tx) error { return w.index() }}
	_, err := w.attempt(group{jobs: []*job{index}, chores: true})
	return err
}
