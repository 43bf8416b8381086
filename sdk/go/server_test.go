package wakeshift_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// The revisions of the protocol that are tested.
const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
)

func newServer() *mcp.Server {
	return mcp.NewServer(&mcp.Implementation{Name: "crawler", Version: "1.0.0"}, nil)
}

// connect connects a client to a server in memory, in the given revision.
func connect(t *testing.T, server *mcp.Server, client, revision string) *mcp.ClientSession {
	t.Helper()
	return connectWith(t.Context(), t, server, mcp.NewClient(&mcp.Implementation{Name: client, Version: "2.1.0"}, nil), revision)
}

func connectWith(ctx context.Context, t *testing.T, server *mcp.Server, client *mcp.Client, revision string) *mcp.ClientSession {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	serverSession, err := server.Connect(ctx, ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := client.Connect(ctx, theirs, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		serverSession.Wait()
	})
	return session
}

// callTool calls a tool; a protocol error ends the test.
func callTool(t *testing.T, session *mcp.ClientSession, name string, arguments map[string]any) *mcp.CallToolResult {
	t.Helper()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// texts are the texts of a result.
func texts(res *mcp.CallToolResult) []string {
	var out []string
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			out = append(out, text.Text)
		}
	}
	return out
}

type toolHandler = func(context.Context, *wakeshift.ToolCall, crawlArgs) (*mcp.CallToolResult, any, error)

// attachTool attaches wake to a server with one tool, "watch".
func attachTool(server *mcp.Server, wake *wakeshift.Wakeshift, handler toolHandler, opts ...wakeshift.ToolOption) *mcp.Server {
	attached := wake.Attach(server, wakeshift.AttachOptions{Identify: headerUser})
	wakeshift.AddTool(attached, &mcp.Tool{Name: "watch", Description: "Watch."}, handler, opts...)
	return server
}

func said(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// subscribing is a tool that subscribes its caller to an event.
func subscribing(e *wakeshift.Event[crawlArgs, crawl], opts ...wakeshift.SubscribeOption) toolHandler {
	return func(ctx context.Context, call *wakeshift.ToolCall, in crawlArgs) (*mcp.CallToolResult, any, error) {
		if _, err := e.Subscribe(ctx, call, in, opts...); err != nil {
			return nil, nil, err
		}
		return said("Watching " + in.Job + "."), nil, nil
	}
}

// subscribeIn makes a tool subscribe to crawl.finished and returns what Subscribe
// did.
func subscribeIn(t *testing.T, wake *wakeshift.Wakeshift, client string, arguments map[string]any) (wakeshift.Subscribed, error) {
	t.Helper()
	e := define(t, wake, "crawl.finished", crawlEvent())
	var made wakeshift.Subscribed
	var failed error
	server := attachTool(newServer(), wake, func(ctx context.Context, call *wakeshift.ToolCall, in crawlArgs) (*mcp.CallToolResult, any, error) {
		made, failed = e.Subscribe(ctx, call, in)
		return said("done"), nil, nil
	})
	callTool(t, connect(t, server, client, modern), "watch", arguments)
	return made, failed
}

// A rawReply is one answer over HTTP, as it came.
type rawReply struct {
	Status int
	Body   string
	Result map[string]any
	Error  *rpcError
}

type rpcError struct {
	Code    int            `json:"code"`
	Message string         `json:"message"`
	Data    map[string]any `json:"data"`
}

// rpc describes a raw request over HTTP.
type rpc struct {
	url      string
	method   string
	params   map[string]any // nil: no params at all, unless modern
	revision string
	client   string            // empty: no clientInfo
	headers  map[string]string // added, and removed where empty

	notification bool // without an id
}

// modernMeta is the _meta that the revision 2026-07-28 asks for.
func modernMeta(client string) map[string]any {
	meta := map[string]any{
		"io.modelcontextprotocol/protocolVersion":    modern,
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"extensions": map[string]any{"x/ext": map[string]any{}}},
	}
	if client != "" {
		meta["io.modelcontextprotocol/clientInfo"] = map[string]any{"name": client, "version": "9.9"}
	}
	return meta
}

func (r rpc) send(t *testing.T) rawReply {
	t.Helper()
	headers := map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": r.revision,
	}
	request := map[string]any{"jsonrpc": "2.0", "id": "id-1", "method": r.method}
	if r.notification {
		delete(request, "id")
	}
	if r.revision == modern {
		headers["Mcp-Method"] = r.method
		params := map[string]any{"_meta": modernMeta(r.client)}
		for name, value := range r.params {
			params[name] = value
		}
		if name, ok := params["name"].(string); ok {
			headers["Mcp-Name"] = name
		}
		request["params"] = params
	} else if r.params != nil {
		request["params"] = r.params
	}
	for name, value := range r.headers {
		headers[name] = value
	}
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	return post(t, r.url, body, headers)
}

func post(t *testing.T, url string, body []byte, headers map[string]string) rawReply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	reply := rawReply{Status: response.StatusCode, Body: string(data)}
	text := string(data)
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, "data: "); ok {
				text = rest
			}
		}
	}
	var message struct {
		Result map[string]any `json:"result"`
		Error  *rpcError      `json:"error"`
	}
	if json.Unmarshal([]byte(text), &message) == nil {
		reply.Result, reply.Error = message.Result, message.Error
	}
	return reply
}
