package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
	"github.com/rouse-dev/rouse/internal/wake"
)

// openFails opens a database that must not open, and returns why.
func openFails(t *testing.T, path string) error {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err == nil {
		s.Close()
		t.Fatal("it opened")
	}
	return err
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Error(err)
	}
}

// otherProcess has the test binary run again to open a database, and returns what it says; see TestMain.
func otherProcess(t *testing.T, path string, env ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(append(os.Environ(), openEnv+"="+path), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rouse.db")
	s := open(t, path)
	for who, err := range map[string]string{
		"this process": openFails(t, path).Error(),
		"another":      otherProcess(t, path),
	} {
		for _, want := range []string{store.ErrLocked.Error(), path, fmt.Sprintf("process %d", os.Getpid())} {
			if !strings.Contains(err, want) {
				t.Errorf("%s is told %q, want something with %q", who, err, want)
			}
		}
	}
	if err := openFails(t, path); !errors.Is(err, store.ErrLocked) {
		t.Errorf("got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if out := otherProcess(t, path); out != "opened" {
		t.Errorf("after Close another process is told %q", out)
	}
	open(t, path)
}

func TestUnwritable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, path := range map[string]string{
		"a file in place of the directory": filepath.Join(file, "rouse.db"),
		"no directory":                     filepath.Join(t.TempDir(), "none", "rouse.db"),
		"a directory in its place":         t.TempDir(),
	} {
		if err := openFails(t, path); !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestFull fills the file to its limit: what was refused left nothing, and with room again all goes on.
func TestFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rouse.db")
	s := open(t, path)
	update(t, s, func(tx store.Tx) error { return tx.CreateApp(wake.App{ID: "app"}) })
	payload := []byte(`{"x":"` + strings.Repeat("y", 3000) + `"}`)
	emitTwo := func(n int) error {
		return s.Update(t.Context(), func(tx store.Tx) error {
			for i := range 2 {
				o := wake.Occurrence{App: "app", Topics: []string{"topic"}, Key: fmt.Sprint(n, "/", i), Data: payload}
				if _, err := tx.Append(o); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var want []string
	emitAll := func(from, n int) (err error) {
		for i := from; i < from+n && err == nil; i++ {
			if err = emitTwo(i); err == nil {
				want = append(want, fmt.Sprint(i, "/", 0), fmt.Sprint(i, "/", 1))
			}
		}
		return err
	}
	update(t, s, func(tx store.Tx) error { return sqlite.LimitSize(tx, 20) })
	if err := emitAll(0, 1000); !errors.Is(err, store.ErrFull) {
		t.Fatalf("got %v, want ErrFull", err)
	}
	for range 3 { // and again, and no worse
		if err := emitTwo(2000); !errors.Is(err, store.ErrFull) {
			t.Fatalf("got %v, want ErrFull", err)
		}
	}
	if diff := cmp.Diff(want, keys(t, s)); diff != "" {
		t.Errorf("in the log when full (-want +got):\n%s", diff)
	}
	if fresh, err := s.Spend(t.Context(), "scope", "id", time.Now().Add(time.Hour)); !fresh || err != nil {
		t.Errorf("Spend when full: %v, %v", fresh, err)
	}

	update(t, s, func(tx store.Tx) error { return sqlite.LimitSize(tx, -1) })
	if err := emitAll(3000, 10); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	if diff := cmp.Diff(want, keys(t, s)); diff != "" {
		t.Errorf("in the log afterwards (-want +got):\n%s", diff)
	}
	if fresh, err := s.Spend(t.Context(), "scope", "id", time.Now().Add(time.Hour)); fresh || err != nil {
		t.Errorf("Spend of what was spent when full: %v, %v", fresh, err)
	}
}

// damaged makes a database with some 18 MB of log, closes it, and has its bytes changed.
func damaged(t *testing.T, payloads int, damage func(content []byte) []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rouse.db")
	s := open(t, path)
	data := []byte(`{"x":"` + strings.Repeat("y", 250_000) + `"}`)
	update(t, s, func(tx store.Tx) error { return tx.CreateApp(wake.App{ID: "app"}) })
	update(t, s, func(tx store.Tx) error {
		for range payloads {
			if _, err := tx.Append(wake.Occurrence{App: "app", Topics: []string{"topic"}, Data: data}); err != nil {
				return err
			}
		}
		return nil
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, damage(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// blot overwrites an eighth of the bytes, from that part of them on.
func blot(content []byte, eighth int) []byte {
	size := len(content) / 8
	for i := range size {
		content[eighth*size+i] = 0xff
	}
	return content
}

func TestDamaged(t *testing.T) {
	t.Parallel()
	for what, damage := range map[string]func([]byte) []byte{
		"its first bytes": func(b []byte) []byte { copy(b, "something"); return b },
		"its first page":  func(b []byte) []byte { clear(b[100:4096]); return b },
		"its middle":      func(b []byte) []byte { return blot(b, 4) },
		"its end is lost": func(b []byte) []byte { return b[:len(b)/2] },
		"other content":   func([]byte) []byte { return []byte(strings.Repeat("notes\n", 1000)) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if err := openFails(t, damaged(t, 4, damage)); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("got %v, want ErrCorrupt", err)
			}
		})
	}
}

// TestDamagedLarge finds damage in a database too large to be checked when it is opened.
func TestDamagedLarge(t *testing.T) {
	t.Parallel()
	s := open(t, damaged(t, 70, func(b []byte) []byte { return blot(b, 4) }))
	for name, do := range map[string]func(func(store.Reader) error) error{
		"View": func(f func(store.Reader) error) error { return s.View(t.Context(), f) },
		"Update": func(f func(store.Reader) error) error {
			return s.Update(t.Context(), func(tx store.Tx) error { return f(tx) })
		},
	} {
		err := do(func(r store.Reader) error {
			_, err := r.Occurrences("app", []string{"topic"}, 0, 100)
			return err
		})
		if !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
	}
	update(t, s, func(tx store.Tx) error { return emit(tx, "the rest is usable") })
}

func TestOtherDatabase(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		statement string
		want      string
		open      bool // by us, before
	}{
		"another program's": {statement: "CREATE TABLE notes (id INTEGER)", want: "another program"},
		"a later version's": {
			statement: "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)", want: "later version", open: true,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "rouse.db")
			if test.open {
				if err := open(t, path).Close(); err != nil {
					t.Fatal(err)
				}
			}
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = db.Exec(test.statement)
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			if err := openFails(t, path); !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want something with %q", err, test.want)
			}
		})
	}
}

// TestCloseLeavesOneFile finds everything in the one file once the store is closed.
func TestCloseLeavesOneFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "rouse.db"))
	update(t, s, func(tx store.Tx) error { return tx.CreateApp(wake.App{ID: "app"}) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"rouse.db", "rouse.db.lock"}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestPaths opens databases whose names mean something in a URL.
func TestPaths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"with space.db", "a%20b.db", "a?b=c.db", "a#b.db", "日本.db", "a&_pragma=x.db"} {
		path := filepath.Join(t.TempDir(), name)
		open(t, path)
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}
