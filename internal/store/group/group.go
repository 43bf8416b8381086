package group

import (
	"context"
	"errors"
	"log/slog"
	"runtime"

	"github.com/rouse-dev/rouse/internal/store"
)

// A Database runs transactions, one at a time. A Writer calls its methods from one goroutine at a time.
//
// An error of Begin or Commit or of a Part's Broken may wrap [ErrAgain]: the same updates are then run again as they were.
type Database interface {
	// Begin begins a transaction, after ending one that an earlier failure may have left open.
	Begin() error
	// Chores does within the transaction, before the updates, what was left for later, and reports whether it wrote anything.
	// It is called with each transaction but those that repeat a part of a failed one. When it fails, or the commit does,
	// the updates are run again without it. The last call, by Close, is told so.
	Chores(last bool) (wrote bool, err error)
	// Part begins one update's part of the transaction. It ends with the next call of Part or Commit.
	Part() Part
	// Commit writes what the parts left unwritten and commits. An error means that nothing was kept.
	Commit() error
	// Rollback undoes the transaction, in memory as well. It is called after any failure: of Begin, Chores and Commit too.
	Rollback()
}

// A Foreseer is a Database that looks up at once what several updates will ask of it.
type Foreseer interface {
	// Foresee is called within the transaction, before the updates whose topics these are. Its error spoils the transaction.
	Foresee(topics []store.Topics) error
}

// A Part is one update's part of a transaction, and what its function is given.
type Part interface {
	store.Tx
	// Wrote reports whether it may have changed something.
	Wrote() bool
	// Broken is why the whole transaction can no longer be kept, whatever the function returns; nil as long as it can.
	Broken() error
}

// ErrAgain means that a transaction was ended from outside, by a lost connection or a deadlock for instance, that nothing of
// it was kept, and that it may succeed when it is run again. That is done a few times; then the error is the updates'.
var ErrAgain = errors.New("the transaction was ended from outside")

// ErrUnknown means that a commit got no answer and that it could not be found out what became of it. The updates get the error
// and are not run again, since they may have been kept.
var ErrUnknown = errors.New("it is not known whether the transaction was kept")

// Options say how a Writer works. The zero value is good.
type Options struct {
	// Sync makes durable what was committed before the call. It is called from one goroutine at a time, which may be
	// another than the one that runs transactions, while that does. Nil means that Commit returns when all is durable.
	Sync func() error
	// Logger is told of what nobody waits for: that chores fail, that a sync failed. Nil logs nothing.
	Logger *slog.Logger
}

// A Writer runs updates in groups. Its methods are safe for concurrent use.
type Writer struct {
	db    Database
	log   *slog.Logger
	queue *queue
	disk  *disk
	done  chan struct{} // closed when the goroutine that runs transactions has ended

	// What follows belongs to the goroutine that runs transactions.

	todo       []batch // what was taken from the queue and is not yet done, the next one last
	running    *job
	complained bool // that chores fail
}

// New gives a Writer and starts its goroutines, which end with Close.
func New(db Database, o Options) *Writer {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	q := newQueue()
	w := &Writer{db: db, log: o.Logger, queue: q, disk: newDisk(o.Sync, q, o.Logger), done: make(chan struct{})}
	go w.run()
	return w
}

// Update runs f within a transaction, which others may share, and returns once that is durable. It is [store.Store].Update:
// the end of ctx takes f out of the queue if it has not begun; a panic of f comes out here. The error is f's own,
// [store.ErrClosed], [store.ErrSyncFailed] or one of the database's.
func (w *Writer) Update(ctx context.Context, f func(store.Tx) error) error {
	return w.wait(ctx, &job{f: f, topics: store.TopicsOf(ctx), done: make(chan struct{})})
}

// Between runs f while no transaction is open, waiting for the end of the one that runs, and returns f's error. Updates
// wait meanwhile. Contexts, panics and other errors are as with Update.
func (w *Writer) Between(ctx context.Context, f func() error) error {
	return w.wait(ctx, &job{between: f, done: make(chan struct{})})
}

func (w *Writer) wait(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !w.queue.add(j) {
		return store.ErrClosed
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		if w.queue.remove(j) {
			return ctx.Err()
		}
		<-j.done
	}
	if j.panicked != nil {
		panic(j.panicked)
	}
	if j.exited {
		runtime.Goexit()
	}
	return j.err
}

// WakeForChores has Chores called soon although no update may come. It does not block.
func (w *Writer) WakeForChores() { w.queue.wakeForChores() }

// Queued is how many callers wait for their function to begin.
func (w *Writer) Queued() int { return w.queue.len() }

// A Mark stands for the commits that a snapshot may hold.
type Mark int64

// Mark is called after a snapshot was taken, beside the Writer's transactions, for Synced. It costs next to nothing.
func (w *Writer) Mark() Mark { return w.disk.mark() }

// Synced waits until all that a snapshot may hold is durable; the mark was taken after the snapshot. It returns at once when
// nothing is being written. The error is ctx's, or [store.ErrSyncFailed]; then nothing that was read is to be given out.
func (w *Writer) Synced(ctx context.Context, m Mark) error { return w.disk.wait(ctx, m) }

// Failed is [store.ErrSyncFailed], with its cause, once a sync has failed, and nil before.
func (w *Writer) Failed() error { return w.disk.failure() }

// Close lets no more updates in, waits until those that are queued have run and been answered, and has Chores called a last
// time. It is called once. It does not close the database.
func (w *Writer) Close() {
	w.queue.close()
	<-w.done
	w.disk.close()
}
