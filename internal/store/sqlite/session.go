package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// A session is one connection taken out of its pool and the statements prepared on it, which must be closed before it can
// be.
type session struct {
	*sql.Conn
	statements []*sql.Stmt
}

func newSession(ctx context.Context, db *sql.DB) (*session, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &session{Conn: conn}, nil
}

// PrepareContext prepares a statement that lives as long as the session.
func (s *session) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	statement, err := s.Conn.PrepareContext(ctx, query)
	if err == nil {
		s.statements = append(s.statements, statement)
	}
	return statement, err
}

// Close gives the connection back to its pool.
func (s *session) Close() error {
	var errs []error
	for _, statement := range s.statements {
		errs = append(errs, statement.Close())
	}
	return errors.Join(append(errs, s.Conn.Close())...)
}
