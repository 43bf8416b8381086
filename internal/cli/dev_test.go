//go:build !windows

package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/server"
)

// program is this program in a process of its own, with a temporary directory of its own.
func program(t *testing.T, args ...string) (cmd *exec.Cmd, temporary string) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd, temporary = exec.Command(path, args...), dataDir(t)
	cmd.Env = append(bare(t), "ROUSE_TEST_PROGRAM=1", "TMPDIR="+temporary, "ROUSE="+path)
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill() // it has ended, unless the test failed
		}
	})
	return cmd, temporary
}

// empty fails the test when something was left in a directory.
func empty(t *testing.T, directory string) {
	t.Helper()
	left, err := os.ReadDir(directory)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func statusOf(err error) int {
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

func TestDevRunsACommand(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		flags  []string
		script string
		stdin  string
		status int
		out    string
	}{
		"its status":         {script: "exit 7", status: 7},
		"success":            {script: "true"},
		"killed":             {script: "kill -9 $$", status: 128 + 9},
		"its own signal":     {script: "kill -TERM $$", status: 128 + 15},
		"input and output":   {script: "cat; echo aside >&2", stdin: "one\ntwo\n", out: "one\ntwo\n"},
		"core and key":       {script: `echo "${WAKESHIFT_CORE%:*} ${WAKESHIFT_KEY%%_*} ${WAKESHIFT_KEY_2-none}"`, out: "http://127.0.0.1 wst none\n"},
		"more apps":          {flags: []string{"--apps", "3"}, script: `test "$WAKESHIFT_KEY_3" != "$WAKESHIFT_KEY_2" && $ROUSE app list --json | grep -o '"id":"[^"]*"'`, out: "\"id\":\"dev\"\n\"id\":\"dev-2\"\n\"id\":\"dev-3\"\n"},
		"rouse within":       {script: `unset WAKESHIFT_KEY; $ROUSE emit a.b || echo "$ROUSE_DATA" | sed 's/.*rouse-dev-.*/refused/'`, out: "refused\n"},
		"rouse with the key": {script: `unset ROUSE_DATA; $ROUSE emit a.b 2>&1 | grep -c 'no event'`, out: "1\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, temporary := program(t, append(append([]string{"dev"}, test.flags...), "--", "sh", "-c", test.script)...)
			cmd.Stdin = strings.NewReader(test.stdin)
			var errOut bytes.Buffer
			cmd.Stderr = &errOut
			out, err := cmd.Output()
			if got := statusOf(err); got != test.status || string(out) != test.out {
				t.Errorf("status %d, output %q; want %d, %q; %s", got, out, test.status, test.out, &errOut)
			}
			empty(t, temporary)
		})
	}
}

func TestDevCannotRunACommand(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	for want, path := range map[int]string{127: filepath.Join(directory, "none"), 126: directory} {
		cmd, temporary := program(t, "dev", "--", path)
		out, err := cmd.CombinedOutput()
		if got := statusOf(err); got != want || !strings.Contains(string(out), path) {
			t.Errorf("%s: status %d, %q; want %d", path, got, out, want)
		}
		empty(t, temporary)
	}
}

func TestDevPassesSignalsOn(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			// The command says when it is ready, and ends by its own choice with a status of its own.
			script := fmt.Sprintf(`trap 'echo got it; exit 42' %d; echo ready; while :; do sleep 0.1; done`, int(signal))
			cmd, temporary := program(t, "dev", "--", "sh", "-c", script)
			out := newWatched()
			cmd.Stdout = out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			out.waitFor(t, "ready\n")
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if got := statusOf(cmd.Wait()); got != 42 || out.String() != "ready\ngot it\n" {
				t.Errorf("status %d, output %q", got, out)
			}
			empty(t, temporary)
		})
	}
}

func TestDevWithoutACommand(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			cmd, temporary := program(t, "dev", "--apps", "2")
			out, errOut := newWatched(), newWatched()
			cmd.Stdout, cmd.Stderr = out, errOut
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			errOut.waitFor(t, "rouse tail --data ")
			out.waitFor(t, "export WAKESHIFT_KEY_2=")
			// What it prints is what a shell needs.
			check := exec.Command("sh", "-c", out.String()+`printf '%s ' "${WAKESHIFT_CORE%:*}" "${WAKESHIFT_KEY%%_*}" "${WAKESHIFT_KEY_2%%_*}"; $ROUSE emit a.b`)
			check.Env = cmd.Env
			if got, err := check.Output(); statusOf(err) != 1 || string(got) != "http://127.0.0.1 wst wst " {
				t.Errorf("%q: %v", got, err)
			}
			errOut.waitFor(t, "refused") // as `rouse tail` shows it
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if got := statusOf(cmd.Wait()); got != 0 || strings.Count(out.String(), "\n") != 3 {
				t.Errorf("status %d, output %q", got, out)
			}
			empty(t, temporary)
		})
	}
}

func TestDevKeepsItsData(t *testing.T) {
	t.Parallel()
	data := filepath.Join(dataDir(t), "kept")
	run := func(script string, environ ...string) string {
		t.Helper()
		cmd, temporary := program(t, "dev", "--data", data, "--", "sh", "-c", script)
		cmd.Env = append(cmd.Env, environ...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		empty(t, temporary)
		return strings.TrimSpace(string(out))
	}
	first := run(`echo "$WAKESHIFT_KEY"`)
	// The key of the run before is still good, for the same app.
	if got := run(`WAKESHIFT_KEY=$FIRST $ROUSE emit a.b 2>&1 | grep -o 'no event'`, "FIRST="+first); got != "no event" {
		t.Errorf("with the first key: %q", got)
	}
	running, err := server.Start(t.Context(), server.Options{Data: data, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Shutdown()
	apps, err := running.Core().Apps(t.Context())
	if err != nil || len(apps) != 1 {
		t.Errorf("apps %v, %v; want one", apps, err)
	}
}

func TestServeStopsAtASignal(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			data := dataDir(t)
			cmd, _ := program(t, "serve", "--listen", "127.0.0.1:0", "--data", data)
			errOut := newWatched()
			cmd.Stderr = errOut
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			errOut.waitFor(t, "msg=serving")
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if got := statusOf(cmd.Wait()); got != 0 {
				t.Errorf("status %d: %s", got, errOut)
			}
			left, err := filepath.Glob(filepath.Join(data, "*.sock"))
			if diff := cmp.Diff([]string(nil), left); err != nil || diff != "" {
				t.Errorf("left behind: %v %s", err, diff)
			}
		})
	}
}

func TestWhatIsIgnoredStaysIgnored(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	inner, _ := program(t, "serve", "--listen", "127.0.0.1:0", "--data", data)
	cmd := exec.Command("sh", append([]string{"-c", `trap '' HUP; exec "$@"`, "sh"}, inner.Args...)...)
	cmd.Env = inner.Env
	errOut := newWatched()
	cmd.Stderr = errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test failed
	errOut.waitFor(t, "msg=serving")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if got := runIn(t.Context(), append(bare(t), "ROUSE_DATA="+data), "", "app", "list"); got.status != 0 {
		t.Errorf("after a hangup that was to be ignored: %+v", got)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := statusOf(cmd.Wait()); got != 0 || strings.Count(errOut.String(), "msg=\"stopping") != 1 {
		t.Errorf("status %d: %s", got, errOut)
	}
}
