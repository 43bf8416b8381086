package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// missing is what a machine without PostgreSQL is told.
const missing = "PostgreSQL's initdb and postgres are neither in PATH nor below /usr/lib/postgresql: install the package postgresql (apt-get install postgresql)"

// A cluster is a server of this test binary's own.
type cluster struct {
	directory string // holds the data and the socket
	programs  string // directory of initdb and postgres
	server    *exec.Cmd
	ended     chan struct{} // closed when the server has
	output    bytes.Buffer  // its log; read it after ended
}

// The cluster of this binary, started when it is first asked for.
var (
	mu      sync.Mutex
	started *cluster
	failed  error
)

// Run runs a test binary's tests, given its [testing.M], and then stops the server, if one was started. It returns the status
// to exit with.
func Run(m interface{ Run() int }) int {
	status := m.Run()
	mu.Lock()
	defer mu.Unlock()
	if started == nil {
		return status
	}
	if err := started.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return max(status, 1)
	}
	return status
}

// theCluster gives the cluster of this binary.
func theCluster() (*cluster, error) {
	mu.Lock()
	defer mu.Unlock()
	if started == nil && failed == nil {
		started, failed = start()
	}
	return started, failed
}

// findPrograms gives the directory with the programs of a server, the newest one if there are several.
func findPrograms() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New(missing)
	}
	slices.SortFunc(found, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b) // 9 comes before 15
		}
		return strings.Compare(a, b)
	})
	return filepath.Dir(found[len(found)-1]), nil
}

func start() (_ *cluster, err error) {
	c := &cluster{ended: make(chan struct{})}
	if c.programs, err = findPrograms(); err != nil {
		return nil, err
	}
	if c.directory, err = os.MkdirTemp("", "rouse-pg-"); err != nil {
		return nil, err
	}
	if err := c.serve(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.directory))
	}
	return c, nil
}

// serve makes the cluster and starts its server. Everything is as durable as in earnest, but for the making.
func (c *cluster) serve() error {
	if err := giveAway(c.directory); err != nil {
		return err
	}
	data := filepath.Join(c.directory, "data")
	made := c.command("initdb", "--pgdata", data, "--username", "rouse", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	if out, err := made.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	c.server = c.command("postgres", "-D", data, "-k", c.directory, "-c", "listen_addresses=", "-c", "max_connections=1000",
		"-c", "fsync=on", "-c", "unix_socket_permissions=0777")
	c.server.Stdout, c.server.Stderr = &c.output, &c.output
	if err := c.server.Start(); err != nil {
		return err
	}
	go func() {
		_ = c.server.Wait() // the log says more
		close(c.ended)
	}()
	return c.wait()
}

// wait waits until the server answers.
func (c *cluster) wait() error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if c.command("pg_isready", "--quiet", "--host", c.directory, "--username", "rouse").Run() == nil {
			return nil
		}
		select {
		case <-c.ended:
			return fmt.Errorf("the server has ended: %s", c.output.Bytes())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.Join(errors.New("the server does not answer"), c.stop())
}

// command gives one of the server's programs, to be run by a user that it accepts.
func (c *cluster) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.programs, program), args...)
	cmd.Dir = c.directory
	demote(cmd)
	return cmd
}

// stop ends the server, whoever is still connected, and removes everything.
func (c *cluster) stop() error {
	_ = c.server.Process.Signal(os.Interrupt)
	select {
	case <-c.ended:
	case <-time.After(20 * time.Second):
		_ = c.server.Process.Kill()
		<-c.ended
	}
	return os.RemoveAll(c.directory)
}
