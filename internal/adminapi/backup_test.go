package adminapi_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/adminapi"
)

func TestBackup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.newApp("crawler")
	var copied bytes.Buffer
	var done, all int64
	err := b.client.Backup(t.Context(), &copied, func(d, a int64) {
		if d < done {
			t.Errorf("%d bytes after %d", d, done)
		}
		done, all = d, a
	})
	if err != nil || done != all || int64(copied.Len()) != all || !strings.HasPrefix(copied.String(), "SQLite format 3\x00") {
		t.Errorf("%d of %d bytes, %d came, %v", done, all, copied.Len(), err)
	}
	if left, err := filepath.Glob(filepath.Join(b.data, "backup-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if problems, err := b.client.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("check: %v, %v", problems, err)
	}
}

func TestScratchIsRemoved(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	for _, name := range []string{"backup-1.tmp", "backup-2.tmp", "backup.tmp", "other"} {
		if err := os.WriteFile(filepath.Join(data, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := adminapi.RemoveScratch(data); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(data, "*"))
	if diff := cmp.Diff([]string{filepath.Join(data, "backup.tmp"), filepath.Join(data, "other")}, left); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
