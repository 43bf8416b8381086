package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// locked is the byte of the file that is locked: far behind the content, which others may then still read.
func locked() *windows.Overlapped { return &windows.Overlapped{Offset: 1 << 30} }

// lockFile takes the lock on an open file. It reports false when another has it.
func lockFile(f *os.File) (bool, error) {
	flags := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY)
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, locked())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// unlockFile gives the lock up.
func unlockFile(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, locked())
}
