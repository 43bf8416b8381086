package sqlite

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
)

// A job is one Update on its way through the writer.
type job struct {
	f    func(store.Tx) error
	done chan struct{} // closed once the fields below are final

	err      error
	panicked *panicError // f panicked
	exited   bool        // f ended its goroutine
}

// How the writer gathers jobs: a transaction takes at most maxGroup, and before it starts gives others a moment to arrive
// as long as there are fewer than the last one had. Publishers that waited for the same commit come back together.
const (
	maxGroup = 512
	moment   = 150 * time.Microsecond
	// maxYields ends the moment where time stands still while anybody is busy, as it does in tests.
	maxYields = 2000
)

// A queue holds jobs until the writer takes them. Each belongs to a caller that waits for it, so there are no more jobs
// than callers. Safe for concurrent use; one goroutine takes.
type queue struct {
	mu     sync.Mutex
	filled sync.Cond
	jobs   []*job
	chores bool // there is something to do without a job
	closed bool
	last   int // how many were taken last
}

func newQueue() *queue {
	q := &queue{}
	q.filled.L = &q.mu
	return q
}

// add queues the job; it reports false once the queue is closed.
func (q *queue) add(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.jobs = append(q.jobs, j)
	q.filled.Signal()
	return true
}

// remove takes the job out again; it reports false when the writer has it.
func (q *queue) remove(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.jobs, j)
	if i < 0 {
		return false
	}
	q.jobs = slices.Delete(q.jobs, i, i+1)
	return true
}

// wakeForChores makes take return although there may be no job.
func (q *queue) wakeForChores() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.chores = true
	q.filled.Signal()
}

// close lets no more jobs in. What is queued is still taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.filled.Signal()
}

// take waits for jobs or chores and gives what is there; open is false when there will be no more.
func (q *queue) take() (jobs []*job, open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 0 && !q.chores && !q.closed {
		q.filled.Wait()
	}
	if len(q.jobs) == 0 && q.closed {
		return nil, false
	}
	q.gather()
	n := min(len(q.jobs), maxGroup)
	jobs = slices.Clone(q.jobs[:n])
	q.jobs = slices.Delete(q.jobs, 0, n)
	q.chores = false
	q.last = n
	return jobs, true
}

// gather stands back for a moment, until there are as many jobs as last time.
func (q *queue) gather() {
	if len(q.jobs) >= q.last {
		return
	}
	for begun, yields := time.Now(), 0; len(q.jobs) < q.last && yields < maxYields && time.Since(begun) < moment; yields++ {
		q.mu.Unlock()
		runtime.Gosched()
		q.mu.Lock()
	}
}
