package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile takes the lock on an open file, which lasts until it is closed. It reports false when another has it.
func lockFile(f *os.File) (bool, error) {
	// A byte far behind the content, which others may then still read.
	where := &windows.Overlapped{Offset: 1 << 30}
	flags := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY)
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, where)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}
