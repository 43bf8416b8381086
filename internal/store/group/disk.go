package group

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
)

// A disk counts commits and syncs them, and answers jobs once nothing of what they changed or saw can be lost. Safe for
// concurrent use, but for commit and answer, which belong to the goroutine that runs transactions.
type disk struct {
	sync  func() error // nil: a commit is durable by itself
	queue *queue
	log   *slog.Logger
	done  chan struct{} // closed when run has ended

	mu      sync.Mutex
	changed sync.Cond     // of what run waits for
	begun   Mark          // commits begun; the last one may be under way, or fail and be taken back
	synced  Mark          // of these, how many are durable
	waiting []*job        // for a sync
	through Mark          // the commits to sync, which they need; nobody may wait for those of chores
	syncing bool          // a sync is under way
	took    time.Duration // by the last one; by the last commit if that is durable by itself
	moved   chan struct{} // closed, and made anew, when synced or failed changes or begun is taken back
	failed  error
	closed  bool
}

func newDisk(sync func() error, q *queue, log *slog.Logger) *disk {
	d := &disk{sync: sync, queue: q, log: log, done: make(chan struct{}), moved: make(chan struct{})}
	d.changed.L = &d.mu
	if sync == nil {
		close(d.done)
		return d
	}
	go d.run()
	return d
}

// commit runs f, which commits. The commit counts from before f makes it visible.
func (d *disk) commit(f func() error) error {
	if d.sync == nil {
		begun := time.Now()
		defer func() { d.took = time.Since(begun) }()
		return f()
	}
	d.mu.Lock()
	d.begun++
	d.mu.Unlock()
	err := f()
	if err != nil {
		d.mu.Lock()
		d.begun--
		d.move()
		d.mu.Unlock()
	}
	return err
}

// answer answers the jobs once all that was committed so far is durable, which it need not be when it returns, unless it is
// told to wait for that.
func (d *disk) answer(jobs []*job, wait bool) {
	d.mu.Lock()
	if d.failed == nil && d.synced < d.begun {
		d.waiting = append(d.waiting, jobs...)
		d.through = d.begun
		if wait && !d.syncing {
			d.syncWaiting()
		} else {
			d.queue.setSyncing(true)
			d.changed.Signal()
		}
		d.mu.Unlock()
		return
	}
	err := d.failed
	d.mu.Unlock()
	d.release(jobs, err)
}

// release answers the jobs, with the error if there is one: whatever they came to may rest on what is lost.
func (d *disk) release(jobs []*job, err error) {
	if len(jobs) == 0 {
		return
	}
	d.queue.expect(len(jobs))
	for _, j := range jobs {
		if err != nil {
			j.err = err
		}
		close(j.done)
	}
}

// run syncs what waits, until the disk is closed.
func (d *disk) run() {
	defer close(d.done)
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		for d.syncing || !d.pending() {
			if d.closed && !d.syncing {
				return
			}
			d.changed.Wait()
		}
		d.syncWaiting()
	}
}

// pending reports whether a sync is due. The caller holds the lock.
func (d *disk) pending() bool { return d.failed == nil && d.synced < d.through }

// syncWaiting makes one sync and answers who waited for it. The caller holds the lock, which is let go meanwhile.
func (d *disk) syncWaiting() {
	jobs, through := d.waiting, d.through
	d.waiting, d.syncing = nil, true
	d.mu.Unlock()
	begun := time.Now()
	err := d.sync()
	d.mu.Lock()
	d.syncing, d.took = false, time.Since(begun)
	if err != nil && d.failed == nil {
		d.failed = fmt.Errorf("%w: %w", store.ErrSyncFailed, err)
		d.log.Error("the disk did not confirm a write: no more is read or written until a restart", "error", err)
	}
	if d.failed == nil {
		d.synced = through
	}
	if d.failed != nil || d.through == through { // it answers those who came meanwhile, too
		jobs, d.waiting = append(jobs, d.waiting...), nil
	}
	d.move()
	d.queue.setSyncing(d.pending())
	d.changed.Signal()
	err = d.failed
	d.mu.Unlock()
	d.release(jobs, err)
	d.mu.Lock()
}

// move tells everybody in wait to look again. The caller holds the lock.
func (d *disk) move() {
	close(d.moved)
	d.moved = make(chan struct{})
}

func (d *disk) mark() Mark {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.begun
}

func (d *disk) wait(ctx context.Context, m Mark) error {
	for {
		d.mu.Lock()
		// A commit that failed was taken back, and no snapshot holds it.
		durable, moved, err := d.synced >= min(m, d.begun), d.moved, d.failed
		d.mu.Unlock()
		if err != nil || durable || d.sync == nil {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (d *disk) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// busy reports whether a commit waits for its sync.
func (d *disk) busy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.syncing || d.pending()
}

// lastTook is how long the last sync took; 0 when there was none.
func (d *disk) lastTook() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.took
}

// close ends run once everybody is answered.
func (d *disk) close() {
	d.mu.Lock()
	d.closed = true
	d.changed.Signal()
	d.mu.Unlock()
	<-d.done
}
