package clustertest

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A program is the program under test, built once.
type program struct {
	once sync.Once
	path string
	err  error
}

var rouse program

// build gives the program's path.
func (p *program) build(t testing.TB) string {
	t.Helper()
	p.once.Do(func() {
		directory, err := os.MkdirTemp("", "rouse-bin-")
		if err != nil {
			p.err = err
			return
		}
		p.path = filepath.Join(directory, "rouse")
		command := exec.Command("go", "build", "-o", p.path, "github.com/rouse-dev/rouse/cmd/rouse")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Logf("building: %s", out)
		}
		p.err = err
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.path
}

// remove removes what was built.
func (p *program) remove() error {
	if p.path == "" {
		return nil
	}
	return os.RemoveAll(filepath.Dir(p.path))
}

// A process is one node, which can be killed and started again.
type process struct {
	t       *testing.T
	args    []string
	env     []string
	data    string
	command *exec.Cmd
	log     output
	ended   chan struct{}
}

// newProcess describes a node with a data directory of its own.
func newProcess(t *testing.T, database, publicURL string) *process {
	t.Helper()
	data, err := os.MkdirTemp("", "rouse-node-") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, data: data,
		args: []string{"serve", "--data", data, "--listen", "127.0.0.1:0", "--public-url", publicURL, "--private-webhooks", "--log-level", "info"},
		env:  append(os.Environ(), "ROUSE_DATABASE="+database, "ROUSE_SECRET="+strings.Repeat("1f", 32))}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of the node in %s:\n%s", data, p.log.String())
		}
		_ = os.RemoveAll(data)
	})
	return p
}

// serving is what a node says when it serves.
var serving = regexp.MustCompile(`msg=serving .*address=(\S+)`)

// start starts the node and returns its address once it is ready.
func (p *process) start() (address string) {
	p.t.Helper()
	p.command = exec.Command(rouse.build(p.t), p.args...)
	p.command.Env = p.env
	said := make(chan string, 1)
	p.log.found = func(line string) {
		if is := serving.FindStringSubmatch(line); is != nil {
			said <- is[1]
		}
	}
	p.command.Stderr = &p.log
	if err := p.command.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.ended = make(chan struct{})
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // it is killed, as a rule
	}()
	select {
	case address = <-said:
	case <-p.ended:
		p.t.Fatalf("the node ended: %s", p.log.String())
	case <-time.After(patience):
		p.t.Fatalf("the node does not serve: %s", p.log.String())
	}
	response, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		p.t.Fatalf("not ready: %s, %v", response.Status, err)
	}
	return address
}

// kill ends the node at once, as kill -9 does.
func (p *process) kill() {
	if p.ended == nil {
		return
	}
	_ = p.command.Process.Kill() // it may have ended
	<-p.ended
}

// stop tells the node to stop and waits until it has.
func (p *process) stop() {
	p.t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatal("the node does not stop")
	}
	if code := p.command.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("the node that was told to stop ended with status %d", code)
	}
}

// administer runs a command against the node and returns what it says.
func (p *process) administer(args ...string) string {
	p.t.Helper()
	command := exec.Command(rouse.build(p.t), append(args, "--data", p.data)...)
	var said, trouble bytes.Buffer
	command.Stdout, command.Stderr = &said, &trouble
	if err := command.Run(); err != nil {
		p.t.Fatalf("rouse %s: %v: %s", strings.Join(args, " "), err, trouble.Bytes())
	}
	return strings.TrimSpace(said.String())
}

// An output keeps what a process writes and looks at each line.
type output struct {
	found func(line string)

	mu   sync.Mutex
	text bytes.Buffer
	rest []byte
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(b)
	o.rest = append(o.rest, b...)
	for {
		line, rest, whole := bytes.Cut(o.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		o.found(string(line))
		o.rest = rest
	}
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
