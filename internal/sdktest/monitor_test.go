//go:build unix

package sdktest

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	commandForm = regexp.MustCompile(`(?s)with this command: (u='.*?; done) \.`)
	sessionForm = regexp.MustCompile(`session_key="([^"]+)"`)
	voucherForm = regexp.MustCompile(`wsv_[a-z2-7]{32}`)
)

func find(t *testing.T, form *regexp.Regexp, text string) string {
	t.Helper()
	found := form.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("nothing like %s in: %s", form, text)
	}
	return found[len(found)-1]
}

// A monitor is a Monitor command under way, as the agent's program runs it.
type monitor struct {
	t     *testing.T
	lines chan string
	ended chan error
}

// monitoring runs the command that a result asks for.
func monitoring(t *testing.T, result string) *monitor {
	t.Helper()
	shell := exec.Command("sh", "-c", find(t, commandForm, result))
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	m := &monitor{t: t, lines: make(chan string, 64), ended: make(chan error, 1)}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if line := lines.Text(); line != "" {
				m.lines <- line
			}
		}
		m.ended <- shell.Wait()
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) // the shell and its curl, which may have ended
		<-finished
	})
	return m
}

// A message is one line of a Monitor.
type message struct {
	Type    string         `json:"type"`
	ID      string         `json:"id"`
	Subject string         `json:"subject"`
	Data    map[string]any `json:"data"`
}

// next is the next message, which must have an id.
func (m *monitor) next() (next message) {
	m.t.Helper()
	select {
	case line := <-m.lines:
		if err := json.Unmarshal([]byte(line), &next); err != nil {
			m.t.Fatalf("%q: %v", line, err)
		}
	case err := <-m.ended:
		m.t.Fatalf("the command ended: %v", err)
	case <-time.After(patience):
		m.t.Fatal("no message")
	}
	if next.ID == "" {
		m.t.Errorf("a message without an id: %+v", next)
	}
	return next
}

// finish waits for the command to end by itself, and well.
func (m *monitor) finish() {
	m.t.Helper()
	select {
	case line := <-m.lines:
		m.t.Fatalf("another message: %s", line)
	case err := <-m.ended:
		if err != nil {
			m.t.Errorf("the command ended with %v", err)
		}
	case <-time.After(patience):
		m.t.Fatal("the command does not end")
	}
}

func (m *monitor) expect(want message) (id string) {
	m.t.Helper()
	got := m.next()
	want.ID = got.ID
	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Errorf("message (-want +got):\n%s", diff)
	}
	return got.ID
}
