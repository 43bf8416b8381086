//go:build unix

package sqlite_test

import "syscall"

// giveUpPrivileges makes a process of root's one of nobody's, whom modes of files bind.
func giveUpPrivileges() error {
	if syscall.Getuid() != 0 {
		return nil
	}
	return syscall.Setuid(65534)
}
