package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/adminapi"
	"github.com/rouse-dev/rouse/internal/server"
)

// restored runs `rouse restore` into a data directory of its own, with the secret of the core, and returns the directory.
func (b *testBundle) restored(file string) string {
	b.t.Helper()
	data := dataDir(b.t)
	key, err := os.ReadFile(filepath.Join(b.core.Data(), "master.key"))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "master.key"), key, 0o600); err != nil {
		b.t.Fatal(err)
	}
	if out := b.ok("restore", file, "--data", data); !strings.Contains(out, data) {
		b.t.Errorf("restore says %q", out)
	}
	return data
}

func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.subscribe(b.crawler())
	b.ok("emit", "crawl.finished", "--args", `{"job":"j1"}`, "--payload", `{"pages":12}`)
	file := filepath.Join(t.TempDir(), "rouse.backup")
	var answer struct {
		File  string
		Bytes int64
	}
	b.json(&answer, "backup", file)
	info, err := os.Stat(file)
	if err != nil || info.Size() != answer.Bytes || answer.File != file || info.Mode().Perm() != 0o600 {
		t.Fatalf("%+v; the file: %v, %v", answer, info, err)
	}
	left, err := filepath.Glob(filepath.Join(b.core.Data(), "backup-*"))
	if beside, _ := os.ReadDir(filepath.Dir(file)); err != nil || len(left) > 0 || len(beside) != 1 {
		t.Errorf("left behind: %v, %v, %v", left, beside, err)
	}
	b.ok("emit", "crawl.finished", "--args", `{"job":"j1"}`, "--payload", `{"pages":13}`) // after the backup

	data := b.restored(file)
	core, err := server.Start(t.Context(), server.Options{Data: data, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer core.Shutdown()
	again := &testBundle{t: t, core: core, environ: append(bare(t), "ROUSE_DATA="+data)}
	var before, after struct{ Subscriptions []adminapi.Subscription }
	b.json(&before, "subscriptions")
	again.json(&after, "subscriptions")
	if diff := cmp.Diff(before, after); diff != "" || len(after.Subscriptions) != 1 {
		t.Error(diff)
	}
	if core.Core().Epoch() == b.core.Core().Epoch() {
		t.Error("the restored log has its old epoch: an id could be given out again")
	}
	if out := again.ok("check"); out != "all is well\n" {
		t.Errorf("check: %q", out)
	}
}

func TestABackupReplacesNothingUnasked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	file := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := b.run("backup", file); got.status != 1 || !strings.Contains(got.errOut, "--force") {
		t.Errorf("%+v", got)
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "precious" {
		t.Errorf("the file is now %d bytes, %v", len(content), err)
	}
	b.ok("backup", file, "--force")
	if content, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(content), "SQLite format 3") {
		t.Errorf("with --force: %v", err)
	}
	if got := b.run("backup", filepath.Join(t.TempDir(), "no", "such")); got.status != 1 || !strings.Contains(got.errOut, "writing the backup") {
		t.Errorf("into no directory: %+v", got)
	}
	if got := runIn(t.Context(), append(bare(t), "ROUSE_DATA="+dataDir(t)), "", "backup", file+"2"); got.status != 1 || !strings.Contains(got.errOut, "no core is running") {
		t.Errorf("of no core: %+v", got)
	}
}

func TestARestoreIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.crawler()
	file := filepath.Join(t.TempDir(), "rouse.backup")
	b.ok("backup", file)
	write := func(name string, change func([]byte) []byte) string {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, change(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	damaged := write("damaged", func(c []byte) []byte {
		for i := len(c) / 2; i < len(c)/2+20_000; i++ {
			c[i] ^= 0x5a
		}
		return c
	})
	tests := map[string]struct {
		args []string
		want string
	}{
		"a core that runs":   {[]string{file, "--data", b.core.Data(), "--force"}, "stop it first"},
		"a PostgreSQL core":  {[]string{file, "--data", dataDir(t), "--database", "postgres://localhost/rouse"}, "pg_restore"},
		"a file not there":   {[]string{file + "2", "--data", dataDir(t)}, "no such file"},
		"no database":        {[]string{write("text", func([]byte) []byte { return []byte("hello, I am a text") }), "--data", dataDir(t)}, "restoring"},
		"an empty file":      {[]string{write("empty", func([]byte) []byte { return nil }), "--data", dataDir(t)}, "it is empty"},
		"half a file":        {[]string{write("half", func(c []byte) []byte { return c[:len(c)/2] }), "--data", dataDir(t)}, "damaged"},
		"a damaged database": {[]string{damaged, "--data", dataDir(t)}, "damaged"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := runIn(t.Context(), bare(t), "", append([]string{"restore"}, test.args...)...)
			if got.status != 1 || !strings.Contains(got.errOut, test.want) {
				t.Errorf("%+v; want %q", got, test.want)
			}
			if name == "a core that runs" {
				return
			}
			if left, err := filepath.Glob(filepath.Join(test.args[2], "rouse.db*")); err != nil || len(left) > 1 { // the lock may stay
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
	b.ok("check") // the core that ran is as it was

	data := b.restored(file)
	if got := b.run("restore", file, "--data", data); got.status != 1 || !strings.Contains(got.errOut, "--force") {
		t.Errorf("over a database: %+v", got)
	}
	b.ok("restore", file, "--data", data, "--force")
	if got := runIn(t.Context(), bare(t), "", "check", "--data", data); got.status != 0 {
		t.Errorf("check without a core: %+v", got)
	}
}

func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	if got := runIn(t.Context(), bare(t), "", "check", "--data", data); got.status != 1 || !strings.Contains(got.errOut, "no database") {
		t.Errorf("of nothing: %+v", got)
	}
	if err := os.WriteFile(filepath.Join(data, "rouse.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	got := runIn(t.Context(), bare(t), "", "check", "--data", data, "--json")
	var answer struct{ Problems []adminapi.Problem }
	if err := json.Unmarshal([]byte(got.out), &answer); err != nil || got.status != 1 || len(answer.Problems) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
