//go:build unix

package sdktest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rouse-dev/rouse/rousetest"
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

// Claude Code's name reaches the core however the app is served and whatever version of MCP is spoken.
func TestClaudeCodeIsWokenByItsMonitor(t *testing.T) {
	t.Parallel()
	core := rousetest.NewCore(t)
	endpoint := serve(t, core)
	for name, connect := range map[string]func(t *testing.T) *agent{
		"stdio": func(t *testing.T) *agent { return client{name: "claude-code"}.overStdio(t, core.URL, core.Key) },
		"stdio, 2025": func(t *testing.T) *agent {
			return client{name: "claude-code", protocol: "2025-11-25"}.overStdio(t, core.URL, core.Key)
		},
		"http": func(t *testing.T) *agent { return client{name: "claude-code"}.overHTTP(t, endpoint) },
		"http, 2025": func(t *testing.T) *agent {
			return client{name: "claude-code", protocol: "2025-11-25"}.overHTTP(t, endpoint)
		},
		"http, a person": func(t *testing.T) *agent { return client{name: "claude-code", user: "ada"}.overHTTP(t, endpoint) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := "r" + strings.NewReplacer(" ", "-", ",", "").Replace(name)
			wakes(t, connect(t), map[string]any{"repo": repo}, repo)
		})
	}
}

// wakes subscribes a conversation, emits, and checks what its Monitor prints.
func wakes(t *testing.T, a *agent, asked map[string]any, repo string) {
	t.Helper()
	watching := a.call("watch", about("build.finished", asked))
	if diff := cmp.Diff(map[string]any{"created": true, "harness": "claude-code", "via": "client"}, structured(t, watching)); diff != "" {
		t.Fatalf("subscribed (-want +got):\n%s", diff)
	}
	m := monitoring(t, text(watching))
	build := map[string]any{"payload": map[string]any{"branch": "main", "failures": 2}, "id": repo}
	once := a.facts("emit", about("build.finished", asked, build))
	again := a.facts("emit", about("build.finished", asked, build))
	if diff := cmp.Diff([]any{map[string]any{"matched": 1.0, "duplicate": false}, map[string]any{"matched": 1.0, "duplicate": true}},
		[]any{once, again}); diff != "" {
		t.Errorf("emitted (-want +got):\n%s", diff)
	}
	first := m.expect(message{Type: "event", Subject: repo + ": 2 failures on main", Data: map[string]any{"branch": "main", "failures": 2.0}})
	a.facts("emit", about("build.finished", asked, map[string]any{"payload": map[string]any{"branch": "next", "failures": 0}}))
	second := m.expect(message{Type: "event", Subject: repo + ": 0 failures on next", Data: map[string]any{"branch": "next", "failures": 0.0}})
	if first == second {
		t.Error("two events have one id")
	}
	key := map[string]any{"session_key": find(t, sessionForm, text(watching))}
	renewed := structured(t, a.call("watch", about("build.finished", asked, key)))
	if renewed["created"] != false {
		t.Error("the same conversation is subscribed twice")
	}
	if ended := a.facts("unwatch", about("build.finished", asked, key)); ended["ended"] != true {
		t.Error("nothing was ended")
	}
	m.finish() // nothing is left to wait for
}

func anOptionalArgumentFilters(t *testing.T, endpoint string) {
	a := client{name: "claude-code"}.overHTTP(t, endpoint)
	m := monitoring(t, a.done("watch", about("build.finished", map[string]any{"repo": "filtered", "branch": "main"})))
	for branch, want := range map[string]float64{"main": 1, "next": 0} {
		done := a.facts("emit", about("build.finished", map[string]any{"repo": "filtered"}, map[string]any{"payload": map[string]any{"branch": branch, "failures": 1}}))
		if done["matched"] != want {
			t.Errorf("a build of %s matched %v, want %v", branch, done["matched"], want)
		}
	}
	m.expect(message{Type: "event", Subject: "filtered: 1 failures on main", Data: map[string]any{"branch": "main", "failures": 1.0}})
}

func aPersonalEventReachesItsUserAlone(t *testing.T, endpoint string) {
	ada, bob := client{name: "claude-code", user: "ada"}.overHTTP(t, endpoint), client{name: "claude-code", user: "bob"}.overHTTP(t, endpoint)
	asked := map[string]any{"repo": "r1"}
	adas, bobs := monitoring(t, ada.done("watch", about("review.requested", asked))), monitoring(t, bob.done("watch", about("review.requested", asked)))
	for _, user := range []string{"ada", "bob"} {
		done := ada.facts("emit", about("review.requested", asked, map[string]any{"payload": map[string]any{"title": "one for " + user}, "to": user}))
		if done["matched"] != 1.0 {
			t.Errorf("what is %s's matched %v", user, done["matched"])
		}
	}
	adas.expect(message{Type: "event", Subject: "Please review one for ada of r1", Data: map[string]any{"title": "one for ada"}})
	bobs.expect(message{Type: "event", Subject: "Please review one for bob of r1", Data: map[string]any{"title": "one for bob"}})
}

func TestCodexIsWokenByItsConnector(t *testing.T) {
	t.Parallel()
	core := rousetest.NewCore(t)
	endpoint := serve(t, core)
	for name, a := range map[string]*agent{
		"stdio": client{name: "codex-mcp-client"}.overStdio(t, core.URL, core.Key),
		"http":  client{name: "codex-mcp-client"}.overHTTP(t, endpoint),
	} {
		t.Run(name, func(t *testing.T) {
			asked := map[string]any{"repo": "codex-" + name}
			thread := mcp.Meta{"x-codex-turn-metadata": map[string]any{"thread_id": "thread " + name}}
			watching := a.callWith("watch", about("build.finished", asked), thread)
			if facts := structured(t, watching); facts["harness"] != "codex" {
				t.Fatalf("recognised as %v", facts)
			}
			socket := connector(t, watching, "thread "+name)
			a.facts("emit", about("build.finished", asked, map[string]any{"payload": map[string]any{"branch": "main", "failures": 3}}))
			frame := event(t, socket)
			want := happened{"codex-" + name + ": 3 failures on main", map[string]any{"branch": "main", "failures": 3.0}}
			if diff := cmp.Diff(want, frame); diff != "" {
				t.Errorf("frame (-want +got):\n%s", diff)
			}
		})
	}
}

// connector redeems the beacon of a result for its thread, and connects.
func connector(t *testing.T, result *mcp.CallToolResult, thread string) *websocket.Conn {
	t.Helper()
	beacon, _ := result.Meta["wakeshift/connector"].(string)
	parts := strings.Split(beacon, ".")
	if len(parts) != 3 {
		t.Fatalf("the result has no beacon: %s", text(result))
	}
	var claims struct{ Redeem, Ticket, Tool string }
	if raw, err := base64.RawURLEncoding.DecodeString(parts[1]); err != nil || json.Unmarshal(raw, &claims) != nil {
		t.Fatalf("the beacon's claims cannot be read: %v", err)
	}
	if claims.Tool != "watch" {
		t.Errorf("the beacon names the tool %q", claims.Tool)
	}
	body, err := json.Marshal(map[string]string{"ticket": claims.Ticket, "thread": thread})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, claims.Redeem, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var redeemed struct{ URL string }
	if err := json.NewDecoder(response.Body).Decode(&redeemed); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("redeeming: %s, %v", response.Status, err)
	}
	transport := new(http.Transport)
	socket, _, err := websocket.Dial(t.Context(), redeemed.URL, &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = socket.Close(websocket.StatusNormalClosure, "") // the core need not answer
		transport.CloseIdleConnections()
	})
	return socket
}

// happened is an event as a connector's frame has it.
type happened struct {
	Subject string         `json:"subject"`
	Data    map[string]any `json:"data"`
}

// event is the next event of a connector, which is acknowledged.
func event(t *testing.T, socket *websocket.Conn) happened {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		var frame struct {
			Type       string   `json:"type"`
			DeliveryID string   `json:"delivery_id"`
			Event      happened `json:"event"`
		}
		if err := wsjson.Read(ctx, socket, &frame); err != nil {
			t.Fatal(err)
		}
		if frame.Type != "event" {
			continue
		}
		if err := wsjson.Write(ctx, socket, map[string]string{"type": "ack", "delivery_id": frame.DeliveryID}); err != nil {
			t.Fatal(err)
		}
		return frame.Event
	}
}
