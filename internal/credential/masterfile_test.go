package credential_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/rouse-dev/rouse/internal/credential"
)

func TestLoadMasterCreatesOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := credential.LoadMaster(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := credential.LoadMaster(dir)
	if err != nil {
		t.Fatal(err)
	}
	if first.Mint(credential.Stream, id) != second.Mint(credential.Stream, id) {
		t.Error("the key changed between two starts")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("left behind: %v, %v", entries, err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Name() != "master.key" || info.Size() != 32 || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("made %s, %d bytes, mode %v: %v", info.Name(), info.Size(), info.Mode(), err)
	}
	other, err := credential.LoadMaster(t.TempDir())
	if err != nil || other.Mint(credential.Stream, id) == first.Mint(credential.Stream, id) {
		t.Errorf("two directories have the same key: %v", err)
	}
}

func TestLoadMasterAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var group sync.WaitGroup
	tokens := make([]string, 16)
	for i := range tokens {
		group.Go(func() {
			if m, err := credential.LoadMaster(dir); err != nil {
				t.Error(err)
			} else {
				tokens[i] = m.Mint(credential.Stream, id)
			}
		})
	}
	group.Wait()
	for _, token := range tokens {
		if token != tokens[0] {
			t.Fatalf("two starts at once got different keys")
		}
	}
}

func TestLoadMasterRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		mode    os.FileMode
		want    string
	}{
		"empty":            {"", 0o600, "must be a file of 32 bytes, but has 0: restore it from a backup"},
		"short":            {strings.Repeat("k", 31), 0o600, "must be a file of 32 bytes, but has 31: restore it from a backup"},
		"long":             {strings.Repeat("k", 33), 0o600, "must be a file of 32 bytes, but has 33: restore it from a backup"},
		"read by a group":  {strings.Repeat("k", 32), 0o640, "may be read by others (mode 0640): run chmod 600 on it"},
		"read by everyone": {strings.Repeat("k", 32), 0o604, "may be read by others (mode 0604): run chmod 600 on it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "master.key")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			_, err := credential.LoadMaster(dir)
			if runtime.GOOS == "windows" && c.mode != 0o600 {
				if err != nil {
					t.Errorf("modes mean nothing on Windows, but got %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "kkk") {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if kept, err := os.ReadFile(path); err != nil || string(kept) != c.content {
				t.Errorf("the file was changed to %q, %v", kept, err)
			}
		})
	}
}

func TestLoadMasterWithoutADirectory(t *testing.T) {
	t.Parallel()
	if _, err := credential.LoadMaster(filepath.Join(t.TempDir(), "not", "there")); err == nil {
		t.Error("a key was made in no directory")
	}
}

func TestMasterFromEnv(t *testing.T) {
	t.Parallel()
	secret := bytes.Repeat([]byte{0xfb, 0xff}, 16)
	want := credential.NewMaster([32]byte(secret)).Mint(credential.Stream, id)
	for _, text := range []string{
		hex.EncodeToString(secret), strings.ToUpper(hex.EncodeToString(secret)), " " + hex.EncodeToString(secret) + "\n",
		base64.StdEncoding.EncodeToString(secret), base64.RawStdEncoding.EncodeToString(secret),
		base64.URLEncoding.EncodeToString(secret), base64.RawURLEncoding.EncodeToString(secret),
	} {
		m, err := credential.MasterFromEnv(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if m.Mint(credential.Stream, id) != want {
			t.Errorf("%s was read as another key", text)
		}
	}
	for _, text := range []string{"", "secret", hex.EncodeToString(secret[1:]), hex.EncodeToString(secret) + "00",
		base64.StdEncoding.EncodeToString(secret[1:]), strings.Repeat("g", 64), strings.Repeat("/", 43)} {
		_, err := credential.MasterFromEnv(text)
		if err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func FuzzMasterFromEnv(f *testing.F) {
	f.Add(strings.Repeat("ab", 32))
	f.Add(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := credential.MasterFromEnv(text); (m == nil) == (err == nil) {
			t.Fatalf("got %v, %v", m, err)
		}
	})
}
