//go:build unix

package eventsclienttest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/rouse-dev/rouse/sdk/go/events"
)

// The packages of the peer, as pip is asked for them, and the SHA-256 of the published module.
var packages = []string{"mcp-webhook-events==0.2.0", "mcp~=2.3.0", "uvicorn==0.54.0"}

const published = "5d6d5cbc34f185b7e66f1f6f888f34d8b9bc3082592f777835accee2696ed46d"

// installTime bounds making the environment.
const installTime = 5 * time.Minute

// python is the interpreter of a virtual environment with the packages. It is made the first time on a machine and kept in the
// user's cache.
func python(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	directory := filepath.Join(cache, "rouse-test", "mcp-webhook-events-0.2.0")
	if err := os.MkdirAll(filepath.Dir(directory), 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(directory+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatalf("locking %s: %v", lock.Name(), err)
	}
	if err := install(t.Context(), directory); err != nil {
		t.Fatalf("no environment with %s, for which python3 and its package index must be reachable: %v", strings.Join(packages, ", "), err)
	}
	modules, err := filepath.Glob(filepath.Join(directory, "lib", "python3*", "site-packages", "mcp_webhook_events", "__init__.py"))
	if err != nil || len(modules) != 1 {
		t.Fatalf("the environment has the module %d times: %v", len(modules), err)
	}
	module, err := os.ReadFile(modules[0])
	if sum := sha256.Sum256(module); err != nil || hex.EncodeToString(sum[:]) != published {
		t.Fatalf("the module is not the published one: %v", err)
	}
	return interpreter(directory)
}

func interpreter(directory string) string { return filepath.Join(directory, "bin", "python") }

// install makes the environment, unless it is there already. One that was left half made is made again.
func install(ctx context.Context, directory string) error {
	marker := filepath.Join(directory, ".installed")
	wanted := []byte(strings.Join(packages, "\n") + "\n")
	if made, err := os.ReadFile(marker); err == nil && bytes.Equal(made, wanted) {
		return nil
	}
	if err := os.RemoveAll(directory); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, installTime)
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

// servePeer starts the peer; publish makes it publish a number, twice under one id.
func servePeer(t *testing.T) (url string, publish func(pages int)) {
	t.Helper()
	command := exec.Command(python(t), filepath.Join("testdata", "server.py"), filepath.Join(t.TempDir(), "events.sqlite3"))
	command.Stderr = t.Output()
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // it ends by that
		if err := command.Wait(); err != nil {
			t.Errorf("the peer: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the peer did not say where it is: %v", err)
	}
	return strings.TrimSpace(line), func(pages int) {
		if _, err := fmt.Fprintln(in, pages); err != nil {
			t.Errorf("the peer: %v", err)
		}
	}
}

// A server that knows the sketch's codes and webhooks alone, and has no cursors.
func TestPythonPeer(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			url, publish := servePeer(t)
			door := newDoor(t)
			store, err := events.NewFileStore(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			subscribe := func() (*events.Client, *events.Subscription) {
				client := door.start(t, events.HTTP{URL: url + "/mcp", Revision: revision}, events.Options{Store: store})
				s, err := client.Subscribe(t.Context(), "site.updated", nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				return client, s
			}
			client, s := subscribe()
			if s.Mode() != events.Webhook {
				t.Errorf("mode %s", s.Mode())
			}
			publish(1)
			publish(2)
			if diff := cmp.Diff([]int{1, 2}, pages(t, s, 2)); diff != "" {
				t.Error(diff)
			}
			if err := s.Rotate(t.Context()); err != nil {
				t.Error(err)
			}
			publish(3)
			if diff := cmp.Diff([]int{3}, pages(t, s, 1)); diff != "" {
				t.Error(diff)
			}
			client.Close()
			client, s = subscribe()
			publish(4)
			if diff := cmp.Diff([]int{4}, pages(t, s, 1)); diff != "" {
				t.Error(diff)
			}
			if _, err := client.Subscribe(t.Context(), "site.updated", nil, &events.SubscribeOptions{Mode: events.Poll, Key: "second"}); !errors.Is(err, events.ErrNoCompatibleDeliveryMode) {
				t.Errorf("polling: %v", err)
			}
			unserved := newDoor(t)
			stranger := unserved.start(t, events.HTTP{URL: url + "/mcp", Revision: revision}, events.Options{})
			elsewhere, err := events.NewReceiver(unserved.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			unserved.receiver.Store(elsewhere) // which does not know the subscription
			if _, err := stranger.Subscribe(t.Context(), "site.updated", nil, nil); !errors.Is(err, events.ErrCallbackEndpoint) {
				t.Errorf("with a receiver that does not know of it: %v", err)
			}
			if err := s.Unsubscribe(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
