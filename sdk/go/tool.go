package wakeshift

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A ToolCall is one call of a tool that was added with [AddTool]. It is for
// subscribing the conversation that made the call, see [Event.Subscribe], until
// the tool's handler returns. It is safe for concurrent use.
type ToolCall struct {
	attached *Attached
	request  *mcp.CallToolRequest
	declared map[string]bool // events the tool may subscribe to; nil: all

	// turn is held while the core is asked, so that a second subscription knows
	// the session of the first one's answer.
	turn chan struct{}

	mu         sync.Mutex
	call       call
	subscribed bool
	additions  []addition
	ended      bool
}

// User is the app's own id for the person, from Identify; empty when unknown.
func (c *ToolCall) User() string { return c.packed().User }

// ClientName is the MCP client's name as it gave it; empty when unknown.
func (c *ToolCall) ClientName() string { return c.packed().Client }

// Tool is the name of the called tool.
func (c *ToolCall) Tool() string { return c.packed().Tool }

// Session is the conversation's session key: the one the agent passed, or the one
// the core gave this call's first subscription; empty before either. It is a
// secret that acts as the conversation: do not store, show or log it.
func (c *ToolCall) Session() string { return c.packed().Session }

// Request is the request as the MCP SDK has it. Do not change it.
func (c *ToolCall) Request() *mcp.CallToolRequest { return c.request }

func (c *ToolCall) packed() call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.call
}

// A ToolOption adds to a tool.
type ToolOption func(*toolOptions)

type toolOptions struct{ events []AnyEvent }

// Subscribes declares which events a tool subscribes its callers to: it can then
// subscribe to no others. Without it a tool can subscribe to all events of the
// app.
func Subscribes(events ...AnyEvent) ToolOption {
	return func(o *toolOptions) { o.events = append(o.events, events...) }
}

// AddTool adds a tool to an attached server, as [mcp.AddTool] does, for a handler
// that also gets the [ToolCall]. t is not changed.
//
// The tool takes three more, optional arguments by which an agent says which
// conversation it is: session_key, harness and conversation_id. One that the tool
// has itself is left to it. They reach a handler whose In is a map neither.
//
// The result of a call carries what the core adds for the agent: after a
// subscription how it will be woken, else what has been waiting for it. A handler
// that subscribes and then fails hands that over all the same, within a result
// that is an error.
//
// AddTool panics where [mcp.AddTool] does, and if an event of [Subscribes] is
// another app's.
func AddTool[In, Out any](a *Attached, t *mcp.Tool, handler func(context.Context, *ToolCall, In) (*mcp.CallToolResult, Out, error), opts ...ToolOption) {
	var options toolOptions
	for _, option := range opts {
		option(&options)
	}
	declared := a.declare(t.Name, options.events)
	schema, injected, err := toolSchemaFor[In](a.wake.schemas, t.InputSchema)
	if err != nil {
		panic(fmt.Sprintf("wakeshift: AddTool: tool %q: input schema: %v", t.Name, err))
	}
	tool := *t
	tool.InputSchema = schema
	mcp.AddTool(a.server, &tool, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		call, err := a.newToolCall(ctx, req, injected)
		if err != nil {
			var none Out
			return nil, none, err
		}
		defer call.end()
		call.declared = declared
		if arguments, ok := any(in).(map[string]any); ok {
			maps.DeleteFunc(arguments, func(name string, _ any) bool { return slices.Contains(injected, name) })
		}
		return handler(ctx, call, in)
	})
}

func (a *Attached) declare(tool string, events []AnyEvent) map[string]bool {
	if len(events) == 0 {
		return nil
	}
	declared := map[string]bool{}
	for _, e := range events {
		if e == nil || e.definition().wake != a.wake {
			panic(fmt.Sprintf("wakeshift: AddTool: tool %q: Subscribes with an event of another app", tool))
		}
		declared[e.Name()] = true
	}
	return declared
}

func (a *Attached) newToolCall(ctx context.Context, req *mcp.CallToolRequest, injected []string) (*ToolCall, error) {
	calls, ok := ctx.Value(toolCallsKey{}).(*toolCalls)
	if !ok {
		a.wake.log.Error("a middleware of the MCP server does not pass its context on, so a tool was not called")
		return nil, internalError()
	}
	c := &ToolCall{attached: a, request: req, turn: make(chan struct{}, 1), call: packCall(req, req.Params.Meta)}
	who, err := a.identify(ctx, req.Extra, c.call.Client)
	if err != nil {
		return nil, err
	}
	c.call.User, c.call.Tool = who.User, req.Params.Name
	var arguments map[string]any
	_ = json.Unmarshal(req.Params.Arguments, &arguments) // the SDK has checked them
	for _, name := range injected {
		value, _ := arguments[name].(string)
		switch name {
		case sessionArgument:
			c.call.Session = value
		case harnessArgument:
			c.call.Harness = value
		case conversationArgument:
			c.call.Conversation = value
		}
	}
	calls.add(c)
	return c, nil
}

// ask runs one question to the core on behalf of the call, one at a time.
func (c *ToolCall) ask(ctx context.Context, e *event, question func(call) error) error {
	switch {
	case c == nil:
		return errors.New("wakeshift: the ToolCall is nil: pass the one the tool's handler got")
	case c.attached.wake != e.wake:
		return fmt.Errorf("wakeshift: event %s is another app's than the tool", e.name)
	case c.declared != nil && !c.declared[e.name]:
		return fmt.Errorf("wakeshift: tool %s does not declare event %s in Subscribes", c.Tool(), e.name)
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	c.mu.Lock()
	packed, ended := c.call, c.ended
	c.mu.Unlock()
	if ended {
		return errors.New("wakeshift: the tool call has ended: subscribe before its handler returns")
	}
	return question(packed)
}

// keep remembers a subscription's answer for the rest of the call and its result.
func (c *ToolCall) keep(session string, a addition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscribed = true
	if session != "" {
		c.call.Session = session
	}
	c.additions = append(c.additions, a)
}

func (c *ToolCall) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}
