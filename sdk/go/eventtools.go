package wakeshift

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// eventToolNames are the tools by which an agent subscribes itself, whose client
// does not speak MCP Events. What they are called is known here so that a call
// is recognised; what they say and do is the core's.
var eventToolNames = []string{"subscribe_events", "unsubscribe_events", "list_subscriptions"}

// offersEventTools reports whether the app has the tools at all: without a public
// event there is nothing to subscribe to, and the core need not be asked.
func (a *Attached) offersEventTools() bool {
	return !a.opts.NoEventTools && a.wake.manifest.hasPublic()
}

func (m *manifest) hasPublic() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.events, func(e *event) bool { return e.public })
}

// announceTools adds the tools capability to that of a server which has no tools
// of its own.
func (a *Attached) announceTools(res mcp.Result, err error) (mcp.Result, error) {
	if err != nil || !a.offersEventTools() {
		return res, err
	}
	var known *mcp.ServerCapabilities // a copy made for this request
	switch res := res.(type) {
	case *mcp.InitializeResult:
		known = res.Capabilities
	case *mcp.DiscoverResult:
		known = res.Capabilities
	}
	if known != nil && known.Tools == nil {
		known.Tools = &mcp.ToolCapabilities{}
	}
	return res, nil
}

// listTools runs tools/list and adds the event tools that the core has for this
// client. They come on the last page.
func (a *Attached) listTools(ctx context.Context, next mcp.MethodHandler, req mcp.Request) (mcp.Result, error) {
	res, err := next(ctx, "tools/list", req)
	listed, ok := res.(*mcp.ListToolsResult)
	if err != nil || !ok || listed == nil || !a.offersEventTools() {
		return res, err
	}
	out := *listed
	out.CacheScope = "private" // who asks decides what there is, on every page
	if out.NextCursor != "" {
		return &out, nil
	}
	tools := a.eventToolsFor(ctx, req)
	if len(tools) == 0 {
		return &out, nil
	}
	taken, err := a.toolNames(ctx, next, req, listed)
	if err != nil {
		a.wake.log.Warn("the app's tools could not be listed, so the event tools are left out", "error", err)
		return &out, nil
	}
	out.Tools = slices.Clone(listed.Tools)
	for _, tool := range tools {
		if !taken[tool.Name] {
			out.Tools = append(out.Tools, tool)
		}
	}
	return &out, nil
}

// maxToolPages bounds the pages of the app's own tools that are looked through.
const maxToolPages = 1000

// toolNames are the names of the app's own tools, given the last page of them: a
// tool of the app hides the event tool of its name.
func (a *Attached) toolNames(ctx context.Context, next mcp.MethodHandler, req mcp.Request, last *mcp.ListToolsResult) (map[string]bool, error) {
	names := map[string]bool{}
	page := last
	request, ok := req.(*mcp.ListToolsRequest)
	if ok && request.Params != nil && request.Params.Cursor != "" {
		again := *request
		params := *request.Params
		again.Params, params.Cursor = &params, ""
		for range maxToolPages {
			res, err := next(ctx, "tools/list", &again)
			if err != nil {
				return nil, err
			}
			if page, ok = res.(*mcp.ListToolsResult); !ok || page.NextCursor == "" {
				break
			}
			addNames(names, page)
			params.Cursor = page.NextCursor
		}
	}
	addNames(names, last)
	return names, nil
}

func addNames(names map[string]bool, page *mcp.ListToolsResult) {
	for _, tool := range page.Tools {
		names[tool.Name] = true
	}
}

// calledEventTool reports whether a tools/call is one of an event tool: one of
// that name which the server does not have itself.
func (a *Attached) calledEventTool(req mcp.Request, err error) (*mcp.CallToolRequest, bool) {
	request, ok := req.(*mcp.CallToolRequest)
	if err == nil || !ok || request.Params == nil || !slices.Contains(eventToolNames, request.Params.Name) || !a.offersEventTools() {
		return nil, false
	}
	var wire *jsonrpc.Error
	// The SDK has no error of its own for this.
	unknown := fmt.Sprintf("unknown tool %q", request.Params.Name)
	return request, errors.As(err, &wire) && wire.Code == jsonrpc.CodeInvalidParams && wire.Message == unknown
}

// An eventToolCall is the body of a call of an event tool to the core.
type eventToolCall struct {
	Call      call            `json:"call"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Problem   string          `json:"problem,omitempty"` // why the event's arguments do not fit
	Refused   bool            `json:"refused,omitempty"` // Authorize says no
}

// callEventTool has the core do what an agent asks for. What is wrong with it is
// the tool's result, so that the agent reads it.
func (a *Attached) callEventTool(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	tool, err := a.newToolCall(ctx, req, injectedNames)
	if err != nil {
		return nil, err
	}
	defer tool.end()
	arguments, err := ownArguments(req.Params.Arguments)
	if err != nil {
		return toolSays(req, err.Error(), true)
	}
	body := eventToolCall{Call: tool.packed(), Tool: req.Params.Name}
	if body.Arguments, err = encodeJSON(arguments); err != nil {
		return nil, err
	}
	var about *aboutEvent
	if body.Tool == "subscribe_events" {
		about = a.check(ctx, Subscriber{User: body.Call.User, Client: body.Call.Client}, arguments, &body)
	}
	var told struct {
		Text     string   `json:"text"`
		ID       string   `json:"id"` // of the subscription, if one was made or renewed
		Session  string   `json:"session"`
		Addition addition `json:"addition"`
	}
	// Not repeatable: a second request could make a second conversation.
	err = a.wake.request(ctx, coreRequest{method: http.MethodPost, path: "/event-tools/call", body: body}, &told)
	var refusal *Error
	if errors.As(err, &refusal) && refusal.Status/100 == 4 && refusal.Status != http.StatusUnauthorized {
		return toolSays(req, refusal.Message, true)
	}
	if err != nil { // no fault of the agent's
		a.wake.log.Error("an event tool could not be served", "tool", body.Tool, "error", err)
		return toolSays(req, "This cannot be done right now. Try it again later.", true)
	}
	if told.ID != "" {
		tool.keep(told.Session, told.Addition)
		if about != nil {
			about.event.subscribed(ctx, about.who, told.ID, about.arguments)
		}
	}
	return toolSays(req, told.Text, false)
}

// injectedNames are the arguments that say which conversation calls.
var injectedNames = []string{sessionArgument, harnessArgument, conversationArgument}

// ownArguments are the arguments of an event tool without the injected ones,
// which travel with the call.
func ownArguments(raw json.RawMessage) (map[string]json.RawMessage, error) {
	var own map[string]json.RawMessage
	if len(raw) > 0 && json.Unmarshal(raw, &own) != nil {
		return nil, errors.New("the arguments must be an object")
	}
	if own == nil {
		own = map[string]json.RawMessage{}
	}
	for _, name := range injectedNames {
		delete(own, name)
	}
	return own, nil
}

// An aboutEvent is what somebody subscribes to, checked.
type aboutEvent struct {
	event     *event
	who       Subscriber
	arguments json.RawMessage
}

// check checks the event's arguments that an agent gives and asks Authorize. What
// is wrong goes into the body: the core puts it into words, and has the first say
// about events that are not on offer, of which Authorize is not asked. It returns
// nil for what cannot be subscribed to.
func (a *Attached) check(ctx context.Context, who Subscriber, tool map[string]json.RawMessage, body *eventToolCall) *aboutEvent {
	var name string
	_ = json.Unmarshal(tool["event"], &name) // if it cannot be read, the core says so
	e := a.wake.manifest.event(name)
	if e == nil || !e.public {
		body.Refused = true // also should the core know it from another version of the app
		return nil
	}
	var arguments map[string]json.RawMessage
	if raw := tool["arguments"]; len(raw) > 0 && json.Unmarshal(raw, &arguments) != nil {
		body.Problem = "arguments: they must be an object"
		return nil
	}
	checked, err := e.checkArguments(arguments)
	if err != nil {
		var refusal *Error
		errors.As(err, &refusal)
		body.Problem = refusal.Message
		return nil
	}
	body.Refused = e.personal && who.User == "" || !e.allows(ctx, who, checked)
	return &aboutEvent{e, who, checked}
}

// toolSays is a tool's result of one text, for the client's revision.
func toolSays(req *mcp.CallToolRequest, text string, failed bool) (*mcp.CallToolResult, error) {
	result, err := newToolResult(req)
	if err != nil {
		return nil, err
	}
	result.IsError = failed
	result.Content = []mcp.Content{&mcp.TextContent{Text: text}}
	return result, nil
}
