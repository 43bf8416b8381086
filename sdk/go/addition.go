package wakeshift

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An addition is what the core adds to the result of a tool: text for the agent,
// _meta for the program it runs in. Either may be empty.
type addition struct {
	Text string         `json:"text"`
	Meta map[string]any `json:"meta"`
}

// toolCalls are the calls of handlers that one tools/call request makes: one, or
// more when the SDK asks a handler again after input.
type toolCalls struct {
	mu    sync.Mutex
	calls []*ToolCall
}

type toolCallsKey struct{}

func (t *toolCalls) add(c *ToolCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = append(t.calls, c)
}

// additions are those of all subscriptions made.
func (t *toolCalls) additions() (all []addition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.calls {
		c.mu.Lock()
		all = append(all, c.additions...)
		c.mu.Unlock()
	}
	return all
}

// quiet is the call to annotate: the last one, if none made a subscription.
func (t *toolCalls) quiet() *ToolCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	var last *ToolCall
	for _, c := range t.calls {
		c.mu.Lock()
		subscribed := c.subscribed
		c.mu.Unlock()
		if subscribed {
			return nil
		}
		last = c
	}
	return last
}

// callTool runs tools/call and adds to its result. This is done here, and not in
// the tool's handler, since the SDK still makes content of structured output
// after that.
func (a *Attached) callTool(ctx context.Context, next mcp.MethodHandler, req mcp.Request) (mcp.Result, error) {
	calls := &toolCalls{}
	ctx = context.WithValue(ctx, toolCallsKey{}, calls)
	res, err := next(ctx, "tools/call", req)
	if request, ours := a.calledEventTool(req, err); ours {
		res, err = a.callEventTool(ctx, request)
	}
	if err != nil {
		return a.failedTool(calls, req, err)
	}
	result, ok := res.(*mcp.CallToolResult)
	if !ok || result == nil || result.InputRequests != nil {
		return res, nil // the tool will be called again, and subscribe again
	}
	if quiet := calls.quiet(); quiet != nil {
		return apply(result, a.annotation(ctx, quiet)), nil
	}
	return apply(result, calls.additions()...), nil
}

// failedTool hands over what subscriptions have added although the request
// failed: the subscriptions exist. The error becomes the tool's.
func (a *Attached) failedTool(calls *toolCalls, req mcp.Request, failure error) (mcp.Result, error) {
	additions := calls.additions()
	var wire *jsonrpc.Error
	if len(additions) == 0 || errors.As(failure, &wire) && wire.Code == mcp.CodeURLElicitationRequired {
		return nil, failure // the latter is asked again, as with InputRequests
	}
	result, err := newToolResult(req)
	if err != nil {
		return nil, err
	}
	result.IsError = true
	message := failure.Error()
	if wire != nil {
		message = wire.Message
	}
	result.Content = []mcp.Content{&mcp.TextContent{Text: message}}
	return apply(result, additions...), nil
}

// newToolResult is an empty result of a tool, for the client's revision.
func newToolResult(req mcp.Request) (*mcp.CallToolResult, error) {
	result := &mcp.CallToolResult{}
	if call, ok := req.(*mcp.CallToolRequest); ok && isModern(call.ProtocolVersion()) {
		// The field is the SDK's own, which would not fill it in here.
		if err := json.Unmarshal([]byte(`{"content":[],"resultType":"complete"}`), result); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// annotation asks what waits for a conversation that was not subscribed now.
func (a *Attached) annotation(ctx context.Context, c *ToolCall) addition {
	var waiting addition
	err := a.wake.core.call(ctx, coreRequest{
		method:  http.MethodPost,
		path:    "/topics/annotate",
		body:    map[string]any{"call": c.packed()},
		hurried: true,
	}, &waiting)
	if err != nil {
		a.wake.log.Warn("what waits for a conversation could not be asked for", "tool", c.Tool(), "error", err)
		return addition{}
	}
	return waiting
}

// apply returns a result with additions: each distinct text once, as a text of
// its own, and _meta merged, where a later addition wins. The tool's own result
// may be shared by many calls and is not changed.
func apply(result *mcp.CallToolResult, additions ...addition) *mcp.CallToolResult {
	out := *result
	out.Content = slices.Clone(result.Content)
	out.Meta = maps.Clone(result.Meta)
	seen := map[string]bool{"": true}
	for _, a := range additions {
		if !seen[a.Text] {
			seen[a.Text] = true
			out.Content = append(out.Content, &mcp.TextContent{Text: a.Text})
		}
		if len(a.Meta) > 0 && out.Meta == nil {
			out.Meta = mcp.Meta{}
		}
		maps.Copy(out.Meta, a.Meta)
	}
	return &out
}
