package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/group"
)

// What SQLSTATE codes mean here, by the whole code or else by its class, the first two characters.
var meanings = map[string]error{
	"53100": store.ErrFull,        // disk_full
	"25006": store.ErrReadOnly,    // read_only_sql_transaction: a standby
	"42501": store.ErrReadOnly,    // insufficient_privilege
	"XX001": store.ErrCorrupt,     // data_corrupted
	"XX002": store.ErrCorrupt,     // index_corrupted
	"40001": group.ErrAgain,       // serialization_failure
	"40P01": group.ErrAgain,       // deadlock_detected
	"55P03": store.ErrUnavailable, // lock_not_available: another node's transaction lasts too long
	"57014": store.ErrUnavailable, // query_canceled: statement_timeout
	"53":    store.ErrUnavailable, // insufficient_resources: too_many_connections
}

// fault maps an error that a connection returned to one the store's callers can tell apart. A missing row is ErrNotFound. The
// end of the connection is ErrUnavailable, and may be tried again on another one.
func fault(conn *pgx.Conn, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrNoRows):
		return store.ErrNotFound
	case conn.IsClosed():
		return fmt.Errorf("%w: %w: %w", store.ErrUnavailable, group.ErrAgain, err)
	}
	var e *pgconn.PgError
	if !errors.As(err, &e) || len(e.Code) < 2 {
		return err
	}
	for _, code := range []string{e.Code, e.Code[:2]} {
		if meaning := meanings[code]; meaning != nil {
			return fmt.Errorf("%w: %w", meaning, err)
		}
	}
	return err
}
