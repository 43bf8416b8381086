package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/group"
)

// Options are what Open can be told. The zero value is good.
type Options struct {
	// Logger is told of what went wrong in the background. Nil logs nothing.
	Logger *slog.Logger
}

// A Store keeps everything in one SQLite file. It implements [store.Store] and is safe for concurrent use.
type Store struct {
	path         string
	lock         *os.File
	writes       *sql.DB
	reads        *sql.DB
	writer       *writer
	wal          *wal
	viewers      chan *viewer // those not in use
	checkpointer *checkpointer
	scrubber     *scrubber
	closing      chan struct{}
	release      func() error
}

var _ store.Store = (*Store)(nil)

// Open opens the database at that path and makes the file when there is none; its directory must be there. It has the
// database for this process alone until Close. The error is one of [store.ErrLocked], [store.ErrReadOnly],
// [store.ErrCorrupt] and [store.ErrFull] where that is the cause. The end of ctx ends the opening only.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{scrubber: newScrubber(), closing: make(chan struct{})}
	s.release = sync.OnceValue(s.shut)
	if err := s.open(ctx, path, o); err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, errors.Join(err, s.closeFiles()))
	}
	s.writer.updates = group.New(s.writer, group.Options{
		Sync: func() error { return s.wal.sync(s.wal.file) }, Logger: o.Logger,
	})
	go s.checkpointer.run()
	return s, nil
}

func (s *Store) open(ctx context.Context, path string, o Options) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	s.path = path
	if s.lock, err = lock(path); err != nil {
		return err
	}
	if s.writes, err = connect(path, writerPragmas); err != nil {
		return err
	}
	s.writes.SetMaxOpenConns(1)
	if err := examine(ctx, s.writes, path); err != nil {
		return fault(err)
	}
	if err := migrate(ctx, s.writes); err != nil {
		return fmt.Errorf("bring the tables up to date: %w", fault(err))
	}
	session, err := newSession(ctx, s.writes)
	if err != nil {
		return fault(err)
	}
	if s.checkpointer, err = newCheckpointer(path, o.Logger); err != nil {
		return err
	}
	if s.writer, err = newWriter(ctx, session, s.checkpointer); err != nil {
		return fault(errors.Join(err, session.Close()))
	}
	if s.wal, err = openWAL(path); err != nil {
		return errors.Join(err, session.Close())
	}
	if s.reads, err = connect(path, viewerPragmas); err != nil {
		return err
	}
	s.viewers = make(chan *viewer, max(4, runtime.GOMAXPROCS(0)))
	for range cap(s.viewers) {
		s.viewers <- &viewer{}
	}
	return nil
}

// View implements [store.Store]. It waits for one of a few connections, and afterwards, if need be, for the disk to have what
// f could see; the end of ctx ends either wait.
func (s *Store) View(ctx context.Context, f func(store.Reader) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	mark, err := s.view(ctx, f)
	if unsynced := s.writer.updates.Synced(ctx, mark); unsynced != nil {
		return unsynced
	}
	return err
}

// view runs f and returns what its snapshot may hold.
func (s *Store) view(ctx context.Context, f func(store.Reader) error) (group.Mark, error) {
	select {
	case v := <-s.viewers:
		defer func() { s.viewers <- v }()
		if err := s.ready(ctx); err != nil {
			return 0, err
		}
		if err := v.open(ctx, s.reads); err != nil {
			return 0, fmt.Errorf("open a connection for reading: %w", fault(err))
		}
		return v.view(s.writer, f)
	case <-s.closing:
		return 0, store.ErrClosed
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// ready tells why a call should not begin: the store is closed, a sync failed, or ctx has ended.
func (s *Store) ready(ctx context.Context) error {
	select {
	case <-s.closing:
		return store.ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.writer.updates.Failed()
}

// Update implements [store.Store]. The end of ctx takes f out of the queue if it has not begun. A panic of f comes out
// here.
func (s *Store) Update(ctx context.Context, f func(store.Tx) error) error {
	return s.writer.updates.Update(ctx, f)
}

// Spend implements [store.Store]. It answers from memory.
func (s *Store) Spend(ctx context.Context, scope, id string, until time.Time) (bool, error) {
	if err := s.ready(ctx); err != nil {
		return false, err
	}
	return s.writer.spent.spend(spentIDOf(scope, id), until), nil
}

// Close implements [store.Store]. Updates that are queued still run.
func (s *Store) Close() error { return s.release() }

func (s *Store) shut() error {
	close(s.closing)
	s.scrubber.close()
	s.writer.updates.Close()
	s.writer.spent.stop()
	var errs []error
	for range cap(s.viewers) {
		errs = append(errs, (<-s.viewers).close())
	}
	errs = append(errs, s.checkpointer.close(), s.writer.session.Close())
	return errors.Join(append(errs, s.closeFiles())...)
}

// closeFiles closes what is open, the writer's connection last: with it the write-ahead log is brought into the database.
func (s *Store) closeFiles() error {
	var errs []error
	if s.wal != nil {
		errs = append(errs, s.wal.close())
	}
	if s.reads != nil {
		errs = append(errs, s.reads.Close())
	}
	if s.writes != nil {
		errs = append(errs, s.writes.Close())
	}
	if s.lock != nil {
		errs = append(errs, unlock(s.lock))
	}
	return errors.Join(errs...)
}
