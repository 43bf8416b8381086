//go:build !windows

package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestPrepareData(t *testing.T) {
	t.Parallel()
	directory := func(mode os.FileMode, content ...string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			t.Helper()
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, name := range content {
				if err := os.WriteFile(filepath.Join(path, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := map[string]struct {
		before func(t *testing.T, path string)
		refuse string // part of the error; empty: the directory is private in the end
	}{
		"absent":           {before: func(*testing.T, string) {}},
		"private":          {before: directory(0o700, "rouse.db")},
		"open and empty":   {before: directory(0o755)},
		"open and in use":  {before: directory(0o750, "rouse.db"), refuse: "chmod 700"},
		"not a directory":  {before: func(t *testing.T, path string) { _ = os.WriteFile(path, nil, 0o600) }, refuse: "not a directory"},
		"stricter is kept": {before: directory(0o500)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "data")
			test.before(t, path)
			got, err := PrepareData(path)
			if test.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), test.refuse) {
					t.Fatalf("error %v; want one that holds %q", err, test.refuse)
				}
				return
			}
			if err != nil || got != path {
				t.Fatalf("got %q, %v; want %q", got, err, path)
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("the directory is open: %v %v", info.Mode(), err)
			}
		})
	}
}

func TestDefaultData(t *testing.T) {
	t.Parallel()
	if _, err := DefaultData(environment(nil)); err == nil || !strings.Contains(err.Error(), "--data") {
		t.Errorf("without HOME: %v; want an error that says what to do", err)
	}
	home := map[string]string{"HOME": "/home/ada"}
	want := "/home/ada/.local/share/rouse"
	if runtime.GOOS == "darwin" {
		want = "/home/ada/Library/Application Support/rouse"
	}
	if got, err := DefaultData(environment(home)); err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if runtime.GOOS != "darwin" {
		home["XDG_DATA_HOME"] = "/srv"
		if got, err := DefaultData(environment(home)); err != nil || got != "/srv/rouse" {
			t.Errorf("got %q, %v; want /srv/rouse", got, err)
		}
	}
}
