package crashtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// longest is how long a round may last until its process is killed.
const longest = 600 * time.Millisecond

// Run kills processes for that long. command gives one that runs Write as the given round, on standard output; open opens
// the database, which each round finds as the one before left it. The same seed gives the same moments, as far as
// processes keep to them.
func Run(t *testing.T, duration time.Duration, seed uint64, command func(round int) *exec.Cmd, open func(*testing.T) store.Store) {
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	l := &ledger{}
	rounds := 0
	for end := time.Now().Add(duration); rounds < 2 || time.Now().Before(end); {
		rounds++
		after := time.Duration(random.Int64N(int64(longest)))
		acknowledged, err := kill(command(rounds), after)
		if err != nil {
			t.Fatalf("round %d, to be killed after %v: %v", rounds, after, err)
		}
		s := open(t)
		l.check(t, s, rounds, acknowledged)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("in round %d, killed after %v with %d messages acknowledged", rounds, after, len(acknowledged))
		}
	}
	s := open(t)
	defer s.Close()
	l.checkAll(t, s)
	t.Logf("%d rounds, %d messages in the log, %d of them acknowledged", rounds, len(l.log), l.acknowledged)
}

// kill runs a process, kills it after a while, and returns what it said was acknowledged.
func kill(cmd *exec.Cmd, after time.Duration) (map[message]wake.Seq, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	killed := make(chan error, 1)
	timer := time.AfterFunc(after, func() { killed <- cmd.Process.Kill() })
	acknowledged, err := parse(stdout) // until the process has ended
	if timer.Stop() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("the process ended by itself: %s (%w)", stderr.Bytes(), err)
	}
	err = errors.Join(err, <-killed)
	_ = cmd.Wait() // its being killed is no news
	if stderr.Len() > 0 {
		return nil, fmt.Errorf("the process was not just killed: %s", stderr.Bytes())
	}
	return acknowledged, err
}

// parse reads what Write says. A last line that was cut short is not an acknowledgement.
func parse(r io.Reader) (map[message]wake.Seq, error) {
	acknowledged := map[message]wake.Seq{}
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return acknowledged, nil // the end of the pipe, however it came
		}
		var key string
		var seq wake.Seq
		if _, err := fmt.Sscanf(line, "%s %d", &key, &seq); err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		m, err := parseKey(key)
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		acknowledged[m] = seq
	}
}
