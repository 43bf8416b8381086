package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A pipeline collects statements and sends them together, which takes one wait for the server instead of one each. It takes
// the place of a connection below queries that return nothing, and of one that returns a row: that one is what sends. An
// error of any of them is the error of what sends them. It is good for one use.
type pipeline struct {
	conn  *pgx.Conn
	batch pgx.Batch
}

func newPipeline(conn *pgx.Conn) *pipeline { return &pipeline{conn: conn} }

// Exec puts a statement off until others are sent.
func (p *pipeline) Exec(_ context.Context, statement string, args ...any) (pgconn.CommandTag, error) {
	p.batch.Queue(statement, args...)
	return pgconn.CommandTag{}, nil
}

// Query is of no use here: sqlc asks for it.
func (p *pipeline) Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error) {
	return p.conn.Query(ctx, statement, args...)
}

// QueryRow sends what was put off and the statement, whose row it returns.
func (p *pipeline) QueryRow(ctx context.Context, statement string, args ...any) pgx.Row {
	before := p.batch.Len()
	p.batch.Queue(statement, args...)
	return &sent{results: p.conn.SendBatch(ctx, &p.batch), before: before}
}

// send sends what was put off, and returns the last statement's tag.
func (p *pipeline) send(ctx context.Context) (tag pgconn.CommandTag, err error) {
	results := p.conn.SendBatch(ctx, &p.batch)
	for range p.batch.Len() {
		if tag, err = results.Exec(); err != nil {
			_ = results.Close() // which returns the same
			return tag, err
		}
	}
	return tag, results.Close()
}

// sent is the last row of a pipeline on its way.
type sent struct {
	results pgx.BatchResults
	before  int // statements before that of the row
}

func (s *sent) Scan(dest ...any) error {
	for range s.before {
		if _, err := s.results.Exec(); err != nil {
			_ = s.results.Close() // which returns the same
			return err
		}
	}
	if err := s.results.QueryRow().Scan(dest...); err != nil {
		_ = s.results.Close()
		return err
	}
	return s.results.Close()
}
