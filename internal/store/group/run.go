package group

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
)

// A batch is jobs that share a transaction, or one that runs between transactions.
type batch struct {
	jobs    []*job
	fresh   bool // it takes further jobs from the queue while it runs
	chores  bool // chores are done in it too
	last    bool // nothing comes after it
	between bool
	tries   int // how often it was run and is to be run again as it is
}

// How many jobs share a transaction: at most maxGroup, and at least minGroup, if so many wait, whatever time they take.
const (
	minGroup = 16
	maxGroup = 512
)

// maxTries bounds how often a batch is run whose transactions end with ErrAgain.
const maxTries = 5

// run serves the queue until it is closed and empty, then has the chores done a last time.
func (w *Writer) run() {
	ended := false
	defer func() {
		if !ended {
			w.outlive()
		}
	}()
	for open := true; open; {
		w.work()
		var first *job
		first, open = w.queue.wait()
		b := batch{fresh: open, chores: true, last: !open}
		if first != nil {
			b.jobs = []*job{first}
			if first.between != nil {
				b = batch{jobs: b.jobs, between: true}
			}
		}
		w.todo = append(w.todo, b)
	}
	w.work()
	ended = true
	close(w.done)
}

// outlive goes on in a new goroutine after a job ended the writer's, as testing.T.FailNow does. That job is answered, and
// the others of its batch are run again.
func (w *Writer) outlive() {
	last := &w.todo[len(w.todo)-1]
	if !last.between {
		w.db.Rollback()
	}
	w.running.exited = true
	w.answer(w.running)
	last.jobs = slices.DeleteFunc(last.jobs, func(j *job) bool { return j == w.running })
	last.fresh, last.chores = false, last.last
	go w.run()
}

// work does what is to do.
func (w *Writer) work() {
	for len(w.todo) > 0 {
		last := len(w.todo) - 1
		b := &w.todo[last]
		switch {
		case w.disk.failure() != nil:
			w.answer(b.jobs...)
		case b.between:
			w.runBetween(b)
		default:
			failed, err := w.attempt(b)
			done := *b
			w.todo = w.todo[:last]
			if err != nil {
				w.divide(done, failed, err)
				continue
			}
			w.complained = w.complained && !done.chores
			w.answer(done.jobs...)
			continue
		}
		w.todo = w.todo[:last]
	}
}

// runBetween runs a batch of one job without a transaction.
func (w *Writer) runBetween(b *batch) {
	for _, j := range b.jobs { // none is left when it ended its goroutine: see outlive
		w.running = j
		j.panicked, j.err = protect(j.between)
		w.answer(j)
	}
}

// divide deals with a batch of whose transaction nothing was kept. A single job has its answer. The jobs before and after
// the one that failed are tried again without it; when it was none of them, each is tried for itself.
func (w *Writer) divide(b batch, failed int, err error) {
	switch {
	case errors.Is(err, ErrUnknown):
		for _, j := range b.jobs {
			j.err = err
		}
		w.answer(b.jobs...)
	case errors.Is(err, ErrAgain) && b.tries+1 < maxTries:
		b.tries++
		b.fresh = false
		w.todo = append(w.todo, b)
	case b.chores && failed < 0:
		w.complain(err)
		w.todo = append(w.todo, batch{jobs: b.jobs})
	case len(b.jobs) == 1:
		b.jobs[0].err = err
		w.answer(b.jobs[0])
	case failed >= 0:
		w.todo = append(w.todo,
			batch{jobs: b.jobs[failed+1:]}, batch{jobs: b.jobs[failed : failed+1]}, batch{jobs: b.jobs[:failed]})
	default:
		for _, j := range slices.Backward(b.jobs) {
			w.todo = append(w.todo, batch{jobs: []*job{j}})
		}
	}
}

// complain logs that what was left for later could not be done, once until it can.
func (w *Writer) complain(err error) {
	if !w.complained {
		w.log.Warn("what was left for later could not be saved; it will be tried again", "error", err)
	}
	w.complained = true
}

// answer answers jobs that have run, as soon as all they may have seen is durable. When there is one alone and nobody else
// waits, there is nothing to do meanwhile.
func (w *Writer) answer(jobs ...*job) {
	w.disk.answer(jobs, len(jobs) <= 1 && len(w.todo) == 0 && w.queue.len() == 0)
}

// attempt runs a batch in one transaction. On an error nothing of it is kept; failed is the job that caused it, or -1. A job
// that failed before it wrote anything has its error and does not disturb the others.
func (w *Writer) attempt(b *batch) (failed int, err error) {
	if len(b.jobs) == 0 && !b.fresh && !b.chores {
		return -1, nil
	}
	defer func() {
		if err != nil {
			w.db.Rollback()
		}
	}()
	if err := w.db.Begin(); err != nil {
		return -1, fmt.Errorf("begin: %w", err)
	}
	wrote := false
	if b.chores {
		if wrote, err = w.db.Chores(b.last); err != nil {
			return -1, err
		}
	}
	begun := time.Now()
	foreseen := 0
	for n := 0; n < len(b.jobs) || w.extend(b, begun); n++ {
		if n >= foreseen {
			if foreseen, err = w.foresee(b, n); err != nil {
				return -1, err
			}
		}
		changed, err := w.do(b.jobs[n])
		if err != nil {
			return n, err
		}
		wrote = wrote || changed
	}
	if !wrote {
		return -1, w.db.Commit()
	}
	return -1, w.disk.commit(w.db.Commit)
}

// foresee tells the database what the jobs from that one on, and those that wait in the queue, will ask. It returns how many of
// the batch's jobs need not be foreseen again.
func (w *Writer) foresee(b *batch, from int) (int, error) {
	db, ok := w.db.(Foreseer)
	if !ok {
		return maxGroup, nil
	}
	jobs := b.jobs[from:]
	if b.fresh {
		jobs = append(slices.Clone(jobs), w.queue.first(maxGroup-len(b.jobs))...)
	}
	var topics []store.Topics
	for _, j := range jobs {
		if len(j.topics.Topics) > 0 {
			topics = append(topics, j.topics)
		}
	}
	if len(topics) < 2 {
		return from + len(jobs), nil // it asks for itself
	}
	return from + len(jobs), db.Foresee(topics)
}

// extend takes one more job into a fresh batch, unless its transaction is to end.
func (w *Writer) extend(b *batch, begun time.Time) bool {
	if !b.fresh || len(b.jobs) >= maxGroup {
		return false
	}
	took, ran := w.disk.lastTook(), time.Since(begun)
	if len(b.jobs) >= minGroup && ran >= 2*took && !w.disk.busy() {
		return false
	}
	j := w.queue.next(ran < took)
	if j == nil {
		return false
	}
	b.jobs = append(b.jobs, j)
	return true
}

// do runs one job in the transaction, and reports whether it may have changed something. The error it returns is one that
// spoils the transaction.
func (w *Writer) do(j *job) (wrote bool, err error) {
	w.running = j
	part := w.db.Part()
	j.panicked, j.err = protect(func() error { return j.f(part) })
	broken := part.Broken()
	switch {
	case broken != nil && (j.err == nil || errors.Is(broken, ErrAgain)):
		return false, broken
	case broken != nil, j.err != nil && part.Wrote(), j.panicked != nil:
		return false, j.err
	}
	return part.Wrote(), nil
}
