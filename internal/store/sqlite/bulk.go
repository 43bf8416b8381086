package sqlite

import (
	"context"
	"database/sql"
	"strings"

	"github.com/rouse-dev/rouse/internal/wake"
)

// What sqlc cannot express is here: inserts of many rows by one statement, which cost half as much a row, the statements
// around a transaction, and a checkpoint. The pragmas of a new connection are in connect.go.

const (
	insertOccurrence = "INSERT INTO occurrences (seq, app, kind, event, topics, arguments, text, data, recipient, own_key, matched, at) VALUES "
	occurrenceValues = "(?,?,?,?,?,?,?,?,?,?,?,?)"
	insertRun        = "INSERT INTO topic_places (app, topic, last, earlier) VALUES "
	runValues        = "(?,?,?,?)"
)

// checkpoint writes what readers let it write, and waits for nobody. truncate writes everything and empties the log.
const (
	checkpoint = "PRAGMA wal_checkpoint(PASSIVE)"
	truncate   = "PRAGMA wal_checkpoint(TRUNCATE)"
)

// bulkSizes are the numbers of rows that one statement inserts, from the largest down to one.
var bulkSizes = [...]int{32, 8, 1}

// A bulk inserts rows with as few statements as there are.
type bulk struct {
	statements [len(bulkSizes)]*sql.Stmt
	args       []any
}

func prepareBulk(ctx context.Context, session *session, insert, values string) (*bulk, error) {
	b := &bulk{}
	for i, size := range bulkSizes {
		var err error
		b.statements[i], err = session.PrepareContext(ctx, insert+values+strings.Repeat(","+values, size-1))
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// insert writes n rows, whose values the function appends.
func (b *bulk) insert(n int, values func(args []any, row int) []any) error {
	defer func() { clear(b.args) }() // let go of payloads
	for row, size := 0, 0; row < n; {
		for bulkSizes[size] > n-row {
			size++
		}
		b.args = b.args[:0]
		for end := row + bulkSizes[size]; row < end; row++ {
			b.args = values(b.args, row)
		}
		if _, err := b.statements[size].ExecContext(background, b.args...); err != nil {
			return err
		}
	}
	return nil
}

// A pendingOccurrence is an appended occurrence that its transaction has not yet written.
type pendingOccurrence struct {
	wake.Occurrence
	topics string
}

func (p *pendingOccurrence) values(args []any) []any {
	return append(args, int64(p.Seq), p.App, string(p.Kind), p.Event, p.topics, orNull(blob(p.Arguments)), p.Text,
		orNull(blob(p.Data)), textOrNull(p.To), textOrNull(p.Key), int64(p.Matched), micros(p.At))
}

// orNull and textOrNull spare the driver a copy of nothing.
func orNull(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// A transaction holds the statements around one. They are run on the connection's own, not by database/sql, so that one
// connection keeps its prepared statements.
type transaction struct {
	begin, commit, rollback *sql.Stmt
}

// prepareTransaction prepares them; kind is IMMEDIATE for the writer, DEFERRED for a reader.
func prepareTransaction(ctx context.Context, session *session, kind string) (*transaction, error) {
	t := &transaction{}
	for _, s := range []struct {
		to   **sql.Stmt
		text string
	}{{&t.begin, "BEGIN " + kind}, {&t.commit, "COMMIT"}, {&t.rollback, "ROLLBACK"}} {
		var err error
		if *s.to, err = session.PrepareContext(ctx, s.text); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// exec runs a statement without values.
func exec(s *sql.Stmt) error {
	_, err := s.ExecContext(background)
	return err
}
