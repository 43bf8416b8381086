//go:build unix

package sdktest

import (
	"bufio"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/rousetest"
)

// net/http lingers half a second on a connection whose request it refused unread, whoever shuts down meanwhile.
var lingering = goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, lingering) }

// patience is for what must come; it is never waited for in full unless a test fails.
const patience = 30 * time.Second

// eventsExtension is what a client declares that speaks MCP Events.
const eventsExtension = "io.modelcontextprotocol/events"

// builds is the command of the app in testdata, with a key and the core it is for.
func builds(t *testing.T, core, key string, arguments ...string) *exec.Cmd {
	t.Helper()
	program, err := filepath.Abs(filepath.Join("testdata", "builds.py"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(python(t), append([]string{"-B", program}, arguments...)...)
	command.Env = append(os.Environ(), "WAKESHIFT_CORE="+core, "WAKESHIFT_KEY="+key)
	return command
}

// An agent is a client of the app, as an agent's program is one.
type agent struct {
	*mcp.ClientSession
	t *testing.T
}

// A client is who an agent says it is.
type client struct {
	name     string
	user     string // signed in to the app; empty: nobody
	protocol string // version of MCP; empty: the newest
	events   bool   // declares MCP Events
}

// overStdio starts an app of its own, with a key and the core it is for, for a client.
func (c client) overStdio(t *testing.T, core, key string) *agent {
	t.Helper()
	command := builds(t, core, key)
	command.Env = append(command.Env, "SIGNED_IN="+c.user)
	command.Stderr = t.Output()
	return c.connect(t, &mcp.CommandTransport{Command: command})
}

// overHTTP connects a client to an app that runs.
func (c client) overHTTP(t *testing.T, endpoint string) *agent {
	t.Helper()
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	return c.connect(t, &mcp.StreamableClientTransport{Endpoint: endpoint, DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: signedIn{transport, c.user}}})
}

func (c client) connect(t *testing.T, transport mcp.Transport) *agent {
	t.Helper()
	capabilities := &mcp.ClientCapabilities{}
	if c.events {
		capabilities.AddExtension(eventsExtension, nil)
	}
	speaker := mcp.NewClient(&mcp.Implementation{Name: c.name, Version: "1.0.0"}, &mcp.ClientOptions{Capabilities: capabilities})
	for _, method := range []string{"events/list", "events/subscribe", "events/unsubscribe"} {
		if err := mcp.AddSendingCustomMethod[*nativeParams, *nativeResult](speaker, method); err != nil {
			t.Fatal(err)
		}
	}
	session, err := speaker.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: c.protocol})
	if err != nil {
		t.Fatalf("connecting as %s: %v", c.name, err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("closing the session: %v", err)
		}
	})
	return &agent{session, t}
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

// serve starts the app over HTTP and returns its endpoint. It ends with the test.
func serve(t *testing.T, core *rousetest.Core) (endpoint string) {
	t.Helper()
	command := builds(t, core.URL, core.Key, "http")
	command.Stderr = t.Output()
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
	return strings.TrimSpace(line)
}

// TestOneApp has what many agents of one app do at once, each with topics and arguments of its own.
func TestOneApp(t *testing.T) {
	t.Parallel()
	endpoint := serve(t, rousetest.NewCore(t))
	for name, does := range map[string]func(t *testing.T, endpoint string){
		"an optional argument filters":                          anOptionalArgumentFilters,
		"a personal event reaches its user alone":               aPersonalEventReachesItsUserAlone,
		"ChatGPT subscribes with its voucher":                   chatGPTSubscribesWithItsVoucher,
		"a user subscribes natively":                            aUserSubscribesNatively,
		"who speaks events is not offered the subscribing tool": whoSpeaksEventsIsNotOfferedTheSubscribingTool,
		"the SDK's own tools":                                   theSDKsOwnTools,
		"topics":                                                topics,
		"a topic once":                                          aTopicOnce,
		"publish URLs":                                          publishURLs,
		"messages are held for others":                          messagesAreHeldForOthers,
		"refusals are the SDK's typed errors":                   refusalsAreTheSDKsTypedErrors,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			does(t, endpoint)
		})
	}
}

// call calls a tool. An answer that is no result fails the test.
func (a *agent) call(tool string, arguments map[string]any) *mcp.CallToolResult {
	a.t.Helper()
	return a.callWith(tool, arguments, nil)
}

func (a *agent) callWith(tool string, arguments map[string]any, meta mcp.Meta) *mcp.CallToolResult {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	if arguments == nil {
		arguments = map[string]any{}
	}
	result, err := a.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments, Meta: meta})
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	return result
}

// done calls a tool that must succeed, and returns its text.
func (a *agent) done(tool string, arguments map[string]any) string {
	a.t.Helper()
	result := a.call(tool, arguments)
	if result.IsError {
		a.t.Fatalf("%s: %s", tool, text(result))
	}
	return text(result)
}

// facts calls a tool that must succeed, and returns what it says to programs.
func (a *agent) facts(tool string, arguments map[string]any) map[string]any {
	a.t.Helper()
	result := a.call(tool, arguments)
	if result.IsError {
		a.t.Fatalf("%s: %s", tool, text(result))
	}
	return structured(a.t, result)
}

func structured(t *testing.T, result *mcp.CallToolResult) map[string]any {
	t.Helper()
	facts, ok := result.StructuredContent.(map[string]any)
	if !ok {
		t.Fatalf("the result has no facts: %s", text(result))
	}
	return facts
}

func text(result *mcp.CallToolResult) string {
	var parts []string
	for _, content := range result.Content {
		if part, ok := content.(*mcp.TextContent); ok {
			parts = append(parts, part.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// about is the arguments of a tool about an event: the event's, and others of the tool itself.
func about(event string, arguments map[string]any, more ...map[string]any) map[string]any {
	all := map[string]any{"event": event, "arguments": arguments}
	for _, m := range more {
		maps.Copy(all, m)
	}
	return all
}

// nativeParams and nativeResult are requests of MCP Events and their results, whatever is in them.
type nativeParams struct {
	mcp.ParamsBase
	Name      string         `json:"name,omitempty"`
	Arguments map[string]any `json:"arguments,omitempty"`
	Delivery  *delivery      `json:"delivery,omitempty"`
}

type delivery struct {
	Mode   string `json:"mode"`
	URL    string `json:"url"`
	Secret string `json:"secret,omitempty"`
}

type nativeResult struct {
	mcp.ResultBase
	ID             string            `json:"id"`
	RefreshBefore  string            `json:"refreshBefore"`
	Truncated      bool              `json:"truncated"`
	DeliveryStatus json.RawMessage   `json:"deliveryStatus"`
	Events         []json.RawMessage `json:"events"`
}

// native makes a request of MCP Events.
func (a *agent) native(method string, params *nativeParams) (*nativeResult, error) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	return mcp.CallCustomMethod[*nativeParams, *nativeResult](ctx, a.ClientSession, method, params)
}
