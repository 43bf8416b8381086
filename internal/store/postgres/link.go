package postgres

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rouse-dev/rouse/internal/postgres"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
)

// How long is waited for a database that cannot be reached: updates fail after patience, and until an attempt succeeds at
// once. What became of a commit is asked for longer, since nobody could be told otherwise.
const (
	patience        = 5 * time.Second
	longPatience    = time.Minute
	betweenAttempts = 200 * time.Millisecond
	betweenFailures = time.Second
)

// A link is the writer's connection to the database, made again when it breaks. Not safe for concurrent use.
type link struct {
	database *postgres.Database
	conn     *pgx.Conn // nil: none

	lostAt time.Time // since when none can be made; zero while one can
	next   time.Time // when the next attempt is worth it, once patience has ended
	err    error     // of the last attempt
}

// get gives the connection, and says whether it was made just now.
func (l *link) get() (conn *pgx.Conn, fresh bool, err error) {
	if l.conn != nil && !l.conn.IsClosed() {
		return l.conn, false, nil
	}
	if !l.lostAt.IsZero() && time.Now().Before(l.next) {
		return nil, false, l.err
	}
	if l.lostAt.IsZero() {
		l.lostAt = time.Now()
	}
	if err := l.attempt(l.lostAt.Add(patience)); err != nil {
		l.next, l.err = time.Now().Add(betweenFailures), err
		return nil, false, err
	}
	return l.conn, true, nil
}

// attempt connects, once or until a time.
func (l *link) attempt(until time.Time) error {
	for {
		conn, err := l.database.Connect(background)
		if err == nil {
			l.conn, l.lostAt = conn, time.Time{}
			return nil
		}
		if !time.Now().Before(until) {
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
		time.Sleep(betweenAttempts)
	}
}

// abandon lets go of a connection that is closed.
func (l *link) abandon() {
	if l.conn != nil && l.conn.IsClosed() {
		l.conn = nil
	}
}

// kept finds out, once a connection can be had, whether the node's transaction of that number was kept. It takes the lock,
// so that the transaction has ended whatever became of its connection.
func (l *link) kept(node pgtype.UUID, number int64) (bool, error) {
	for until := time.Now().Add(longPatience); ; {
		l.abandon()
		if l.conn == nil {
			if err := l.attempt(until); err != nil {
				return false, err
			}
		}
		done, err := l.done(node)
		if err == nil {
			return done == number, nil
		}
		if !time.Now().Before(until) {
			return false, err
		}
	}
}

// done is the number of the node's last transaction that was kept; 0 when there is none.
func (l *link) done(node pgtype.UUID) (int64, error) {
	defer rollback(l.conn)
	if _, err := begin(l.conn, writing); err != nil {
		return 0, fault(l.conn, err)
	}
	done, err := queries.New(l.conn).Done(background, node)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return done, fault(l.conn, err)
}
