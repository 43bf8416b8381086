package group

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// Callers that waited for the same commit come back together: that long after they were answered they are worth waiting for.
const (
	moment = 150 * time.Microsecond
	// maxYields ends the moment where time stands still while anybody is busy, as it does in tests.
	maxYields = 2000
)

// A queue holds jobs until they are run. Each belongs to a caller that waits for it, so there are no more jobs than callers.
// Safe for concurrent use; one goroutine takes.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond // of what the one that takes waits for
	jobs    []*job
	chores  bool // there is something to do without a job
	closed  bool
	syncing bool // a commit waits for its sync

	away       int // of those who were answered last, how many have not come back
	answeredAt time.Time
}

func newQueue() *queue {
	q := &queue{}
	q.changed.L = &q.mu
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
	q.away = max(0, q.away-1)
	q.changed.Signal()
	return true
}

// remove takes the job out again; it reports false when it was taken.
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

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.jobs)
}

// first gives the updates that would be taken next, at most so many, and leaves them in the queue.
func (q *queue) first(most int) []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	jobs := q.jobs[:min(max(most, 0), len(q.jobs))]
	for i, j := range jobs {
		if j.between != nil {
			jobs = jobs[:i]
			break
		}
	}
	return slices.Clone(jobs)
}

// wakeForChores makes wait return although there may be no job.
func (q *queue) wakeForChores() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.chores = true
	q.changed.Signal()
}

// close lets no more jobs in. What is queued is still taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Signal()
}

// setSyncing says whether a commit waits for its sync.
func (q *queue) setSyncing(is bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.syncing = is
	q.changed.Signal()
}

// expect is told that so many jobs are being answered.
func (q *queue) expect(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.away, q.answeredAt = n, time.Now()
}

// wait waits for something to do. It gives the first job if there is one; open is false when there will be no more.
func (q *queue) wait() (first *job, open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 0 && !q.chores && !q.closed {
		q.changed.Wait()
	}
	if len(q.jobs) == 0 {
		q.chores = false
		return nil, !q.closed
	}
	first = q.pop()
	q.chores = q.chores && first.between != nil
	return first, true
}

// next gives the next update, nil when there is none to wait for. One that may still come is worth waiting for while a
// commit waits for its sync, since the next commit has to wait for that too; and for a moment if all are to be gathered.
func (q *queue) next(gather bool) *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	for yields := 0; ; {
		switch {
		case len(q.jobs) > 0 && q.jobs[0].between != nil:
			return nil
		case len(q.jobs) > 0:
			return q.pop()
		case q.syncing && !q.closed:
			q.changed.Wait()
		case gather && q.away > 0 && yields < maxYields && time.Since(q.answeredAt) < moment:
			yields++
			q.mu.Unlock()
			runtime.Gosched()
			q.mu.Lock()
		default:
			return nil
		}
	}
}

// pop takes the first job. The caller holds the lock.
func (q *queue) pop() *job {
	j := q.jobs[0]
	q.jobs[0] = nil
	q.jobs = q.jobs[1:]
	return j
}
