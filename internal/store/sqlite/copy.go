package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rouse-dev/rouse/internal/store"
)

var _ store.Copier = (*Store)(nil)

// copierPragmas are those of the connection that Copy reads on. What it writes it need not write ahead: the file counts once it
// is whole.
var copierPragmas = []string{"busy_timeout(5000)"}

// Copy implements [store.Copier]. The copy is compact: it has no room left by removed rows, and nothing of what they held.
func (s *Store) Copy(ctx context.Context, path string) (err error) {
	if err := s.ready(ctx); err != nil {
		return err
	}
	// SQLite takes an empty file for a new database; made here it is its owner's alone from the start.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	db, err := connect(s.path, copierPragmas)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", path); err != nil {
		return fmt.Errorf("copy the database: %w", fault(err))
	}
	// The copy is to hold nothing that a loss of power takes back from the database.
	if err := s.writer.updates.Synced(ctx, s.writer.updates.Mark()); err != nil {
		return err
	}
	return syncFile(file)
}

// syncFile has a file and its name on the disk.
func syncFile(file *os.File) error {
	if err := file.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", file.Name(), err)
	}
	directory, err := os.Open(filepath.Dir(file.Name()))
	if err != nil {
		return err
	}
	// Windows cannot sync a directory, and need not.
	_ = directory.Sync()
	return directory.Close()
}

// Install makes a copy of a database, as [Store.Copy] writes it, the database at a path, whose directory must be there. The
// copy is checked whole before. It gets a log of another epoch: places that were given out after it was made may be given
// out again, for other occurrences. A database that is there is an error that wraps [fs.ErrExist] unless it is to be replaced;
// one in use is [store.ErrLocked], a copy that is damaged [store.ErrCorrupt], and neither changes anything.
func Install(ctx context.Context, from, path string, replace bool) (err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return err
	}
	held, err := lock(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock(held)) }()
	if _, err := os.Lstat(path); err == nil && !replace {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	fresh := path + ".restored"
	defer func() {
		if err != nil {
			removeDatabase(fresh)
		}
	}()
	removeDatabase(fresh) // of a process that was killed
	if err := copyFile(from, fresh); err != nil {
		return err
	}
	if err := renew(ctx, fresh); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	// The write-ahead log belongs to the old database: with the new one it would be damage.
	for _, beside := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// Its content is on the disk before it counts as the database, its name before it is said to.
	if err := syncPath(fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return err
	}
	return syncPath(path)
}

func syncPath(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(syncFile(file), file.Close())
}

// renew checks a database, brings its tables up to date and gives its log another epoch.
func renew(ctx context.Context, path string) (err error) {
	db, err := connect(path, writerPragmas)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if err := examine(ctx, db, path); err != nil {
		return fault(err)
	}
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return fault(err)
	}
	if tables == 0 {
		return errors.New("the file is no copy of a database: it is empty")
	}
	if err := migrate(ctx, db); err != nil {
		return fmt.Errorf("bring the tables up to date: %w", fault(err))
	}
	problems, err := check(ctx, db)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return fmt.Errorf("%w: %s: %s, and %d more", store.ErrCorrupt, problems[0].Where, problems[0].What, len(problems)-1)
	}
	if _, err := db.ExecContext(ctx, "UPDATE log SET epoch = ?", newEpoch()); err != nil {
		return fault(err)
	}
	_, err = db.ExecContext(ctx, "PRAGMA journal_mode(DELETE)") // so that all of it is in the one file
	return fault(err)
}

// copyFile makes a new file, for its owner alone, with the content of another.
func copyFile(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = target.ReadFrom(source)
	return errors.Join(err, target.Close())
}

// removeDatabase removes a database that nobody uses, if there is one.
func removeDatabase(path string) {
	for _, beside := range []string{"", "-wal", "-shm", "-journal"} {
		_ = os.Remove(path + beside) // what remains is in the way of the next attempt, which says so
	}
}
