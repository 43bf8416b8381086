package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
)

// background is the context of every statement within a transaction. One that has begun is not to be interrupted; what ends it
// when something hangs are the server's limits below, and those of the connection.
var background = context.Background()

// Limits that the server keeps. They are set with each transaction: behind a pooler nothing else holds for certain.
const (
	// A node that has died, or hangs, loses the lock after idleLimit within a transaction.
	idleLimit      = 10 * time.Second
	lockLimit      = 20 * time.Second
	statementLimit = time.Minute
)

// settings are those limits, and that an index is used wherever there is one: a plan made while a table was small must not
// stay when it is not. The server takes the plans that are left without an index for dear ones, and would compile them.
var settings = queries.SetLocalParams{
	Names: []string{"idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout", "enable_seqscan", "jit"},
	Settings: []string{
		milliseconds(idleLimit), milliseconds(lockLimit), milliseconds(statementLimit), "off", "off",
	},
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Transactions begin in one of these ways.
const (
	writing = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
)

// lockClass is the first half of the advisory lock that stands for the right to change something; the other is the table's
// own number, so that several databases of ours in schemas of one do not wait for each other.
const lockClass = 0x726f7573

// begin begins a transaction, with the right to change something if it is to write, and returns the state of the log.
func begin(conn *pgx.Conn, how string) (queries.Log, error) {
	p := newPipeline(conn)
	q := queries.New(p)
	_, _ = p.Exec(background, how) // which only puts it off
	_ = q.SetLocal(background, settings)
	if how == writing {
		_ = q.Lock(background, lockClass)
	}
	return q.Log(background)
}

// rollback ends a transaction of which nothing is to be kept, if there is one. When it fails the connection is closed, and
// the server does the same.
func rollback(conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	if _, err := conn.Exec(background, "ROLLBACK"); err != nil {
		_ = conn.Close(background)
	}
}
