//go:build unix

package sdktest

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// eventsExtension is what a client declares that speaks MCP Events.
const eventsExtension = "io.modelcontextprotocol/events"

// An app is the app of testdata, for a core, served in one of the ways there are.
type app struct {
	t        *testing.T // it ends with this test
	node     *node
	key      string
	endpoint string // over HTTP; empty: over stdio, where each client has a process of its own
	observed string // names the SDK's calls that have run

	mu       sync.Mutex
	sessions map[client]func() (*mcp.ClientSession, error)

	refusedWith sync.Map // codes
}

// A client is who an agent says it is.
type client struct {
	name     string
	user     string // signed in to the app; empty: nobody
	protocol string // version of MCP; empty: the newest
	events   bool   // declares MCP Events
}

func newApp(t *testing.T, n *node, key string) *app {
	t.Helper()
	return &app{t: t, node: n, key: key, observed: filepath.Join(t.TempDir(), "observed"), sessions: map[client]func() (*mcp.ClientSession, error){}}
}

// overStdio serves the app over stdio.
func overStdio(t *testing.T, n *node, key string) *app {
	t.Helper()
	return newApp(t, n, key)
}

// overHTTP serves the app over HTTP.
func overHTTP(t *testing.T, n *node, key string) *app {
	t.Helper()
	a := newApp(t, n, key)
	command := a.command("http")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = command.Wait()                          // by the signal
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the app gave no address: %v", err)
	}
	a.endpoint = strings.TrimSpace(line)
	return a
}

// command is a process of the app.
func (a *app) command(arguments ...string) *exec.Cmd {
	a.t.Helper()
	program, err := filepath.Abs(filepath.Join("testdata", "builds", "main.py"))
	if err != nil {
		a.t.Fatal(err)
	}
	command := exec.Command(python(a.t), append([]string{"-B", program}, arguments...)...)
	command.Env = append(os.Environ(), "WAKESHIFT_CORE="+a.node.URL(), "WAKESHIFT_KEY="+a.key, "OBSERVED="+a.observed,
		// The SDK has a client of HTTP for each call, which would read the machine's certificates each time, for nothing.
		"SSL_CERT_FILE=", "SSL_CERT_DIR="+a.t.TempDir())
	command.Stderr = a.t.Output()
	return command
}

// agent is an agent of a test, who is a client of the app. Tests that name the same client share its session.
func (a *app) agent(t *testing.T, c client) *agent {
	t.Helper()
	a.mu.Lock()
	session := a.sessions[c]
	if session == nil {
		session = sync.OnceValues(func() (*mcp.ClientSession, error) { return a.connect(c) })
		a.sessions[c] = session
	}
	a.mu.Unlock()
	connected, err := session()
	if err != nil {
		t.Fatalf("connecting as %s: %v", c.name, err)
	}
	return &agent{connected, t, a}
}

// connect makes a client's session, which ends with the app.
func (a *app) connect(c client) (*mcp.ClientSession, error) {
	capabilities := &mcp.ClientCapabilities{}
	if c.events {
		capabilities.AddExtension(eventsExtension, nil)
	}
	speaker := mcp.NewClient(&mcp.Implementation{Name: c.name, Version: "1.0.0"}, &mcp.ClientOptions{Capabilities: capabilities})
	for _, method := range nativeMethods {
		if err := mcp.AddSendingCustomMethod[*nativeParams, *nativeResult](speaker, method); err != nil {
			return nil, err
		}
	}
	session, err := speaker.Connect(a.t.Context(), a.transport(c), &mcp.ClientSessionOptions{ProtocolVersion: c.protocol})
	if err != nil {
		return nil, err
	}
	a.t.Cleanup(func() {
		if err := session.Close(); err != nil {
			a.t.Errorf("closing the session of %s: %v", c.name, err)
		}
	})
	return session, nil
}

func (a *app) transport(c client) mcp.Transport {
	if a.endpoint == "" {
		command := a.command()
		command.Env = append(command.Env, "SIGNED_IN="+c.user)
		return &mcp.CommandTransport{Command: command}
	}
	transport := new(http.Transport)
	a.t.Cleanup(transport.CloseIdleConnections)
	return &mcp.StreamableClientTransport{Endpoint: a.endpoint, DisableStandaloneSSE: true, HTTPClient: &http.Client{Transport: signedIn{transport, c.user}}}
}

// signedIn is a transport whose requests are a user's.
type signedIn struct {
	http.RoundTripper
	user string
}

func (s signedIn) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.user != "" {
		r = r.Clone(r.Context())
		r.Header.Set("X-User", s.user)
	}
	return s.RoundTripper.RoundTrip(r)
}
