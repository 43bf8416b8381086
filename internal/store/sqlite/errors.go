package sqlite

import (
	"database/sql"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/rouse-dev/rouse/internal/store"
)

// fault maps an error of the database to one the store's callers can tell apart. A missing row, or a row that names an app,
// a conversation or a webhook which is not there, is ErrNotFound.
func fault(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrNotFound
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	if kind := kindOf(e.Code()); kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

func kindOf(code int) error {
	switch code {
	case sqlitelib.SQLITE_CONSTRAINT_FOREIGNKEY:
		return store.ErrNotFound
	case sqlitelib.SQLITE_IOERR_SHMSIZE: // the index of the log could not be extended
		return store.ErrFull
	case sqlitelib.SQLITE_IOERR_CORRUPTFS:
		return store.ErrCorrupt
	}
	switch code & 0xff {
	case sqlitelib.SQLITE_FULL:
		return store.ErrFull
	case sqlitelib.SQLITE_READONLY, sqlitelib.SQLITE_PERM, sqlitelib.SQLITE_CANTOPEN:
		return store.ErrReadOnly
	case sqlitelib.SQLITE_CORRUPT, sqlitelib.SQLITE_NOTADB:
		return store.ErrCorrupt
	case sqlitelib.SQLITE_BUSY, sqlitelib.SQLITE_LOCKED:
		return store.ErrLocked
	}
	return nil
}

// harmless reports whether a statement's failure left the transaction it ran in as it was: a missing row, or a broken
// reference, which undoes the statement alone. After anything else SQLite may have undone more.
func harmless(err error) bool { return errors.Is(err, store.ErrNotFound) }
