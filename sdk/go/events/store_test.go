package events_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/sdk/go/events"
)

func TestStores(t *testing.T) {
	directory := t.TempDir()
	file, err := events.NewFileStore(directory)
	if err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]events.Store{"memory": &events.MemoryStore{}, "file": file} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			put := func(key, value string) {
				t.Helper()
				if err := store.Put(ctx, key, []byte(value)); err != nil {
					t.Fatal(err)
				}
			}
			isKept := func(prefix string, want map[string][]byte) {
				t.Helper()
				got, err := store.List(ctx, prefix)
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("%v, -want +got:\n%s", err, diff)
				}
			}
			isKept("a/", map[string][]byte{})
			put("a/b/state", "1")
			put("a/b/state", "2")
			put("a/b/in/x", "3")
			put("a/c/state", "4")
			isKept("a/b/", map[string][]byte{"a/b/state": []byte("2"), "a/b/in/x": []byte("3")})
			isKept("a/c/state", map[string][]byte{"a/c/state": []byte("4")})
			for range 2 {
				if err := store.Delete(ctx, "a/b/in/x"); err != nil {
					t.Fatal(err)
				}
			}
			isKept("a/b/", map[string][]byte{"a/b/state": []byte("2")})
		})
	}
	if err := file.Put(t.Context(), "../elsewhere", nil); err == nil {
		t.Error("a key leads out of the directory")
	}
	// What a crash leaves is passed over, and what was stored is there for the next.
	if err := os.WriteFile(filepath.Join(directory, "a/b/state.1.new"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := events.NewFileStore(directory)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.List(t.Context(), "a/b/")
	if diff := cmp.Diff(map[string][]byte{"a/b/state": []byte("2")}, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}
