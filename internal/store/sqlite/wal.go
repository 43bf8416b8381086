package sqlite

import (
	"fmt"
	"os"

	"github.com/rouse-dev/rouse/internal/store"
)

// A wal is the file of the write-ahead log, by a handle of our own. To sync it is what makes commits durable: see the
// package's comment. SQLite keeps the same file as long as a connection is open, and has no locks on it that the closing of
// a handle would take away.
type wal struct {
	file *os.File
	sync func(*os.File) error // syncData; a test holds it back
}

// openWAL opens the log of the database at that path, which a connection has made, and syncs it: it may hold commits of a
// process that was killed before it could.
func openWAL(path string) (*wal, error) {
	file, err := os.OpenFile(path+"-wal", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	}
	w := &wal{file, syncData}
	if err := w.sync(file); err != nil {
		file.Close()
		return nil, fmt.Errorf("%w: %w", store.ErrSyncFailed, err)
	}
	return w, nil
}

func (w *wal) close() error { return w.file.Close() }
