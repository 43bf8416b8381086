package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData waits until the file's content is on the disk, and of what else the system knows of it only what is needed to
// read it.
func syncData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
