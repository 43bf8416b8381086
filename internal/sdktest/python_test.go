//go:build unix

package sdktest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The packages under test, as pip is asked for them.
var packages = []string{"wakeshift==0.3.0", "mcp~=2.3.0"}

// installTime bounds making the environment.
const installTime = 5 * time.Minute

// environment is the virtual environment with the packages. It is made the first time on a machine and kept in the user's cache.
var environment = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	directory := filepath.Join(cache, "rouse-test", "wakeshift-0.3.0")
	if err := os.MkdirAll(filepath.Dir(directory), 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(directory+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	return directory, install(directory)
})

// install makes the environment, unless it is there already. One that was left half made is made again.
func install(directory string) error {
	marker := filepath.Join(directory, ".installed")
	wanted := []byte(strings.Join(packages, "\n") + "\n")
	if made, err := os.ReadFile(marker); err == nil && bytes.Equal(made, wanted) {
		return nil
	}
	if err := os.RemoveAll(directory); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), installTime)
	defer cancel()
	pip := append([]string{"-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"}, packages...)
	for _, command := range []*exec.Cmd{
		exec.CommandContext(ctx, "python3", "-m", "venv", directory),
		exec.CommandContext(ctx, interpreter(directory), pip...),
	} {
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", command, err, output)
		}
	}
	return os.WriteFile(marker, wanted, 0o644)
}

func interpreter(directory string) string { return filepath.Join(directory, "bin", "python") }

// python is the environment's interpreter. Without one the test fails.
func python(t *testing.T) string {
	t.Helper()
	directory, err := environment()
	if err != nil {
		t.Fatalf("no environment with %s, for which python3 and its package index must be reachable: %v", strings.Join(packages, " and "), err)
	}
	return interpreter(directory)
}

// published is the SHA-256 of what the wheel's RECORD says of the package's files: their names and hashes in order, a line each.
const published = "5b1415fd202626649ab323e3394a19f21450bd452bc4797e233eef132c5e3bf4"

func TestTheSDKIsAsPublished(t *testing.T) {
	t.Parallel()
	site := filepath.Dir(filepath.Dir(python(t)))
	records, err := filepath.Glob(filepath.Join(site, "lib", "python3*", "site-packages", "wakeshift-0.3.0.dist-info", "RECORD"))
	if err != nil || len(records) != 1 {
		t.Fatalf("the environment has the package %d times: %v", len(records), err)
	}
	packages := filepath.Dir(filepath.Dir(records[0]))
	recorded := record(t, records[0])
	if sum := sha256.Sum256([]byte(strings.Join(recorded, ""))); hex.EncodeToString(sum[:]) != published {
		t.Errorf("RECORD is not the published one; it says:\n%s", strings.Join(recorded, ""))
	}
	if present := files(t, packages, "wakeshift"); !slices.Equal(recorded, present) {
		t.Errorf("recorded:\n%sinstalled:\n%s", strings.Join(recorded, ""), strings.Join(present, ""))
	}
}

// record lists the package's own files by the RECORD, as its lines, in order.
func record(t *testing.T, path string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "wakeshift/") && strings.Contains(line, ",sha256=") {
			lines = append(lines, strings.TrimRight(line, "\r\n")+"\n")
		}
	}
	slices.Sort(lines)
	return lines
}

// files lists the files of a package in the form of a RECORD, in order, without what Python compiled of them.
func files(t *testing.T, root, name string) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, name), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.Name() == "__pycache__":
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		sum := sha256.Sum256(content)
		lines = append(lines, fmt.Sprintf("%s,sha256=%s,%d\n", filepath.ToSlash(relative), base64.RawURLEncoding.EncodeToString(sum[:]), len(content)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}
