package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/rouse-dev/rouse/internal/store"
)

// lock makes this process the only one that has the database: it holds a lock on a file beside it until that is closed.
// SQLite's own locks would also keep out our second connection. The file stays when the lock is gone, or another process
// could be locking one that is just being removed.
func lock(path string) (*os.File, error) {
	path += ".lock"
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	}
	locked, err := lockFile(f)
	switch {
	case err != nil:
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	case !locked:
		defer f.Close()
		return nil, fmt.Errorf("%w: %s", store.ErrLocked, holder(f))
	}
	// Who has it helps whoever finds it locked. Failing to say so, on a full disk for one, is no reason not to open.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
	return f, nil
}

// unlock gives the database up.
func unlock(f *os.File) error { return errors.Join(unlockFile(f), f.Close()) }

// holder tells who has the lock, as far as the file says.
func holder(f *os.File) string {
	text, err := io.ReadAll(io.LimitReader(f, 20))
	if err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return fmt.Sprintf("process %d holds %s", pid, f.Name())
		}
	}
	return f.Name()
}
