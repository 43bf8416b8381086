package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rouse-dev/rouse/internal/postgres"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/group"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
)

// Options are what Open can be told. The zero value is good.
type Options struct {
	// Master is an id of the master key with which secrets are sealed. Open refuses a database that was first opened with
	// another one. Empty compares nothing.
	Master string
	// Logger is told of what went wrong in the background. Nil logs nothing.
	Logger *slog.Logger
}

// asideConnections are for what is not to wait behind views: used-up ids, looks at the log, scrubbing, and what nodes tell each
// other.
const asideConnections = 4

// A Store keeps everything in one PostgreSQL database, which other nodes may use at the same time. It implements
// [store.Store] and is safe for concurrent use.
type Store struct {
	log     *slog.Logger
	writer  *writer
	updates *group.Writer
	views   *pgxpool.Pool
	aside   *pgxpool.Pool
	spends  *spends

	closing context.Context // ends with Close
	end     context.CancelFunc
	tidied  chan struct{}
	release func() error
}

var _ store.Store = (*Store)(nil)

// Open opens the database and makes its tables when there are none, in the first schema of the search path. A database that
// a later version made is refused. The error is one of [store.ErrUnavailable], [store.ErrReadOnly] and [store.ErrFull] where
// that is the cause, and never holds the password. The end of ctx ends the opening only.
func Open(ctx context.Context, d *postgres.Database, o Options) (*Store, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := migrate(ctx, d, o.Master); err != nil {
		return nil, fmt.Errorf("open database %s: %w", d, err)
	}
	if err := warn(ctx, d, o.Logger); err != nil {
		return nil, err
	}
	// Pools live as long as the store, and connect when they are used first.
	views, err := d.Pool(background, max(8, 2*runtime.GOMAXPROCS(0)))
	if err != nil {
		return nil, err
	}
	aside, err := d.Pool(background, asideConnections)
	if err != nil {
		views.Close()
		return nil, err
	}
	var node pgtype.UUID
	_, _ = rand.Read(node.Bytes[:]) // never fails
	node.Valid = true
	s := &Store{log: o.Logger, writer: newWriter(&link{database: d}, node), views: views, aside: aside, spends: newSpends(aside),
		tidied: make(chan struct{})}
	s.updates = group.New(s.writer, group.Options{Logger: o.Logger})
	s.closing, s.end = context.WithCancel(background)
	s.release = sync.OnceValue(s.shut)
	go s.tidy(s.closing)
	return s, nil
}

// warn tells of a server that is not set to keep what it was given.
func warn(ctx context.Context, d *postgres.Database, log *slog.Logger) error {
	conn, err := d.Connect(ctx)
	if err != nil {
		return unavailable(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	is, err := queries.New(conn).Durability(ctx)
	if err == nil && !(is.Synced && is.Awaited) {
		log.Warn("the database does not wait for its disk: a loss of power may lose what was acknowledged",
			"fsync", is.Synced, "synchronous_commit", is.Awaited)
	}
	return fault(conn, err)
}

// View implements [store.Store]. It waits for one of a few connections; the end of ctx ends that wait.
func (s *Store) View(ctx context.Context, f func(store.Reader) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	conn, state, err := s.snapshot(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	defer rollback(conn.Conn()) // nothing was written
	return f(&reader{conn: conn.Conn(), q: queries.New(conn), state: state})
}

// snapshot begins a view, on another connection when the first turns out to be broken. The caller releases the connection.
func (s *Store) snapshot(ctx context.Context) (*pgxpool.Conn, queries.Log, error) {
	for again := true; ; again = false {
		conn, err := s.views.Acquire(ctx)
		switch {
		case err != nil && s.closing.Err() != nil:
			return nil, queries.Log{}, store.ErrClosed
		case err != nil:
			return nil, queries.Log{}, unavailable(err)
		}
		state, err := begin(conn.Conn(), reading)
		if err == nil {
			return conn, state, nil
		}
		err = fault(conn.Conn(), err)
		rollback(conn.Conn())
		conn.Release()
		if !again || !errors.Is(err, group.ErrAgain) {
			return nil, queries.Log{}, fmt.Errorf("begin: %w", err)
		}
	}
}

// unavailable maps an error of getting a connection. The end of a context stays what it is.
func unavailable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// ready tells why a call should not begin: the store is closed, or ctx has ended.
func (s *Store) ready(ctx context.Context) error {
	if s.closing.Err() != nil {
		return store.ErrClosed
	}
	return ctx.Err()
}

// Update implements [store.Store]. The end of ctx takes f out of the queue if it has not begun. A panic of f comes out here.
// When the connection breaks while the server commits, and cannot be made again within a minute, the error is
// [group.ErrUnknown]: the changes may have been kept.
func (s *Store) Update(ctx context.Context, f func(store.Tx) error) error {
	return s.updates.Update(ctx, f)
}

// Spend implements [store.Store].
func (s *Store) Spend(ctx context.Context, scope, id string, until time.Time) (bool, error) {
	if err := s.ready(ctx); err != nil {
		return false, err
	}
	return s.spends.spend(ctx, spentIDOf(scope, id), until)
}

// Size implements [store.Store]. Of occurrences it counts what they were when they came, which is more than they take
// compressed.
func (s *Store) Size(ctx context.Context) (int64, error) {
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	conn, err := s.aside.Acquire(ctx)
	if err != nil {
		return 0, unavailable(err)
	}
	defer conn.Release()
	size, err := queries.New(conn).Size(ctx)
	return size, fault(conn.Conn(), err)
}

// scrubbed are the tables from which content is erased, and users' names with it.
const scrubbed = "VACUUM occurrences, topic_places, deliveries, owed, conversations, subscriptions, replays, webhooks, publish_urls, workspaces, grants, forgetting"

// Scrub implements [store.Store] as far as the server allows: removed rows are taken out of their pages, where their bytes
// may stay until others take their room.
func (s *Store) Scrub(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	conn, err := s.aside.Acquire(ctx)
	if err != nil {
		return unavailable(err)
	}
	defer conn.Release()
	_, err = conn.Exec(ctx, scrubbed)
	return fault(conn.Conn(), err)
}

// Close implements [store.Store]. Updates that are queued still run.
func (s *Store) Close() error { return s.release() }

func (s *Store) shut() error {
	s.end()
	s.updates.Close()
	s.spends.close()
	<-s.tidied
	s.views.Close()
	s.aside.Close()
	return s.writer.close()
}
