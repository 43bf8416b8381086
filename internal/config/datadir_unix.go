//go:build !windows

package config

import (
	"fmt"
	"io/fs"
	"os"
)

// isPrivate reports whether nobody but the owner can do anything in the directory.
func isPrivate(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }

func makePrivate(path string) error {
	if err := os.Chmod(path, 0o700); err != nil {
		return fmt.Errorf("making the data directory private: %w", err)
	}
	return nil
}
