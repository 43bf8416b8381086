package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rouse-dev/rouse/internal/cli"
)

func TestWhatCannotBeUnderstood(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"wake"}, "unknown command"},
		{[]string{"app", "make"}, "rouse app --help"},
		{[]string{"app", "create"}, "ID is missing"},
		{[]string{"serve", "now"}, "too many"},
		{[]string{"serve", "--port", "1"}, "rouse serve --help"},
		{[]string{"dev", "echo", "hello"}, "rouse dev -- echo"},
		{[]string{"dev", "--apps", "0"}, "--apps"},
		{[]string{"docs", "errors"}, "--out is missing"},
	} {
		got := runIn(t.Context(), bare(t), "", test.args...)
		if got.status != 2 || !strings.Contains(got.errOut, test.want) || got.out != "" {
			t.Errorf("rouse %s: %+v; want status 2 and %q", strings.Join(test.args, " "), got, test.want)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"serve", "app create", "app list", "app delete", "key create", "key list", "key revoke", "emit", "subscriptions",
		"tail", "backup", "restore", "check", "dev", "demo"} {
		got := runIn(t.Context(), bare(t), "", append(strings.Fields(command), "--help")...)
		if got.status != 0 || !strings.Contains(got.out, "Examples:\n  rouse "+command) {
			t.Errorf("rouse %s --help has no example of it:\n%s", command, got.out)
		}
	}
	if got := runIn(t.Context(), bare(t), "", "--help"); got.status != 0 || strings.Contains(got.out, "docs") {
		t.Errorf("rouse --help:\n%s", got.out)
	}
	if got := runIn(t.Context(), bare(t), "", "--version"); got.status != 0 || !strings.HasPrefix(got.out, "rouse ") {
		t.Errorf("rouse --version: %+v", got)
	}
}

// The checked-in page is what `go generate ./internal/refusal` writes.
func TestTheErrorsPageIsCurrent(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "errors.md")
	if got := runIn(t.Context(), bare(t), "", "docs", "errors", "--out", out); got.status != 0 {
		t.Fatal(got.errOut)
	}
	written, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	checkedIn, err := os.ReadFile(filepath.Join("..", "..", "docs", "errors.md"))
	if err != nil || !bytes.Equal(written, checkedIn) {
		t.Errorf("docs/errors.md is not what the catalogue says (%v): run go generate ./internal/refusal", err)
	}
}

// serving runs `rouse serve` until the test ends and returns its log, and what ends it and returns its status.
func serving(t *testing.T, environ []string, args ...string) (log *watched, end func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log, done := newWatched(), make(chan int, 1)
	go func() {
		done <- cli.Run(ctx, cli.Env{Args: append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), Stdout: log, Stderr: log, Environ: environ})
	}()
	end = func() int {
		cancel()
		status := <-done
		done <- status
		return status
	}
	t.Cleanup(func() { end() })
	return log, end
}

func TestServe(t *testing.T) {
	t.Parallel()
	environ := append(bare(t), "ROUSE_DATA="+dataDir(t))
	log, end := serving(t, environ)
	log.waitFor(t, "export WAKESHIFT_CORE=http://127.0.0.1:")
	for _, step := range []string{"rouse app create", "rouse key create"} {
		if !strings.Contains(log.String(), step) {
			t.Errorf("the welcome does not say %q:\n%s", step, log)
		}
	}
	second := runIn(t.Context(), environ, "", "serve", "--listen", "127.0.0.1:0")
	if second.status != 1 || !strings.Contains(second.errOut, "another process") || !strings.Contains(second.errOut, "--data") {
		t.Errorf("a second core: %+v", second)
	}
	if got := runIn(t.Context(), environ, "", "app", "create", "crawler"); got.status != 0 {
		t.Errorf("app create: %+v", got)
	}
	if status := end(); status != 0 {
		t.Errorf("status %d", status)
	}
	again, _ := serving(t, environ, "--log-format", "json")
	again.waitFor(t, `"msg":"serving"`)
	if got := runIn(t.Context(), environ, "", "app", "list"); !strings.Contains(got.out, "crawler") {
		t.Errorf("after a restart: %+v", got)
	}
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("secret", 4)
	for name, test := range map[string]struct {
		variables []string
		args      []string
		want      string
	}{
		"a setting":           {nil, []string{"--log-level", "loud"}, "log-level"},
		"a variable":          {[]string{"ROUSE_RETENTION=soon"}, nil, "ROUSE_RETENTION"},
		"a file":              {nil, []string{"--config", "/no/such/rouse.toml"}, "/no/such/rouse.toml"},
		"a bad secret":        {[]string{"ROUSE_SECRET=" + secret}, nil, "ROUSE_SECRET"},
		"no public URL":       {nil, []string{"--listen", ":0"}, "--public-url"},
		"nowhere to put data": {[]string{"ROUSE_DATA=", "HOME="}, nil, "--data"},
	} {
		environ := append(append(bare(t), "ROUSE_DATA="+dataDir(t)), test.variables...)
		got := runIn(t.Context(), environ, "", append([]string{"serve", "--listen", "127.0.0.1:0"}, test.args...)...)
		if got.status != 1 || !strings.Contains(got.errOut, test.want) || strings.Contains(got.errOut, secret) {
			t.Errorf("%s: %+v; want %q", name, got, test.want)
		}
	}
}
