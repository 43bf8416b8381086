package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// checkTools says what is missing on this machine that a Monitor command needs.
func checkTools() error {
	for _, tool := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("there is no %s here, which runs what wakes Claude Code: install it "+
				"(Debian: apt-get install curl; Windows: Git for Windows has both) and try again", tool)
		}
	}
	return nil
}

// A monitor is a Monitor command that runs.
type monitor struct {
	cmd   *exec.Cmd
	lines chan string // closed when the command has ended
}

func startMonitor(command string) (*monitor, error) {
	cmd := exec.Command("sh", "-c", command)
	ownGroup(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("running the Monitor command: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("running the Monitor command: %w", err)
	}
	m := &monitor{cmd: cmd, lines: make(chan string, 16)}
	go func() {
		defer close(m.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if line := lines.Text(); line != "" { // blank lines keep the connection alive
				m.lines <- line
			}
		}
	}()
	return m, nil
}

// next is the next line that would wake the agent.
func (m *monitor) next(ctx context.Context) (string, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case line, ok := <-m.lines:
		if !ok {
			return "", errors.New("the Monitor command has ended before anything happened")
		}
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	case <-timer.C:
		return "", fmt.Errorf("nothing has arrived within %s", patience)
	}
}

// stop ends the command and what it started.
func (m *monitor) stop() {
	killGroup(m.cmd)
	for range m.lines { // until its output is closed
	}
	_ = m.cmd.Wait() // it was killed
}
