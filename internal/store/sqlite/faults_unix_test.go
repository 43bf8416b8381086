//go:build unix

package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rouse-dev/rouse/internal/store"
)

// TestReadOnly opens databases without the right to write, in a process that has given up root's.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rouse.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	for what, modes := range map[string]struct{ directory, file, lock os.FileMode }{
		"directory": {0o555, 0o666, 0o400},
		"file":      {0o777, 0o444, 0o666},
	} {
		dir := t.TempDir()
		copied := filepath.Join(dir, "rouse.db")
		copyFile(t, path, copied)
		copyFile(t, path, copied+".lock")
		for name, mode := range map[string]os.FileMode{copied: modes.file, copied + ".lock": modes.lock, dir: modes.directory} {
			if err := os.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if out := otherProcess(t, copied, unprivilegedEnv+"=1"); !strings.Contains(out, store.ErrReadOnly.Error()) {
			t.Errorf("read-only %s: %q", what, out)
		}
	}
}
