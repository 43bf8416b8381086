package wakeshift_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// runStdioServer is the life of the test binary as a stdio server. Key and core
// come from the environment, as for any app.
func runStdioServer() int {
	wake, err := wakeshift.New()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer wake.Close()
	finished, err := wakeshift.DefineEvent(wake, "crawl.finished", crawlEvent())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := wakeshift.DefineEvent(wake, "site.updated", siteEvent()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server := attachTool(newServer(), wake, subscribing(finished))
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func stdioCommand(t *testing.T, core *fakeCore) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self)
	command.Env = append(os.Environ(), serveStdio+"=1", "WAKESHIFT_KEY="+core.key, "WAKESHIFT_CORE="+core.URL)
	return command
}

func TestStdioTool(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{modern, legacy} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			core := startCore(t)
			transport := &mcp.CommandTransport{Command: stdioCommand(t, core)}
			session, err := mcp.NewClient(&mcp.Implementation{Name: "claude-code", Version: "2.1.0"}, nil).
				Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			res := callTool(t, session, "watch", map[string]any{"job": "j1"})
			if diff := cmp.Diff([]string{"Watching j1.", woken}, texts(res)); diff != "" {
				t.Errorf("texts (-want +got):\n%s", diff)
			}
			want := map[string]any{"client": "claude-code", "client_version": "2.1.0", "tool": "watch"}
			if diff := cmp.Diff(want, core.seen("/event-subscriptions")[0].Body["call"]); diff != "" {
				t.Errorf("call (-want +got):\n%s", diff)
			}
		})
	}
}

// Raw lines, as clients of other makes write them.
func TestStdioNative(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	command := stdioCommand(t, core)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	ask := func(method string, params map[string]any) rawReply {
		t.Helper()
		params["_meta"] = modernMeta("events-client")
		line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stdin.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() {
			t.Fatalf("%s: no answer", method)
		}
		reply := rawReply{Body: lines.Text()}
		message := struct {
			Result *map[string]any `json:"result"`
			Error  **rpcError      `json:"error"`
		}{&reply.Result, &reply.Error}
		if err := json.Unmarshal(lines.Bytes(), &message); err != nil {
			t.Fatal(err)
		}
		return reply
	}
	if capabilities, _ := ask("server/discover", map[string]any{}).Result["capabilities"].(map[string]any); capabilities["events"] == nil {
		t.Errorf("the capabilities are %v", capabilities)
	}
	if events, _ := ask("events/list", map[string]any{}).Result["events"].([]any); len(events) != 2 {
		t.Errorf("events are %v", events)
	}
	event := map[string]any{"name": "site.updated", "arguments": map[string]any{"site": "a"}}
	if got := ask("events/poll", event); got.Result["cursor"] != "c1" || got.Result["resultType"] != "complete" {
		t.Errorf("polled %s", got.Body)
	}
	if got := ask("events/poll", map[string]any{"name": "no.such"}); got.Error == nil || got.Error.Code != -32023 {
		t.Errorf("polled an unknown event: %s", got.Body)
	}
	if got := ask("events/juggle", map[string]any{}); got.Error == nil || got.Error.Code != -32601 {
		t.Errorf("an unknown method: %s", got.Body)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil { // ends when its input ends
		t.Error(err)
	}
}
