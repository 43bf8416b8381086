package wakeshift

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// eventToolsTTL is how long what the core said about a client is kept.
	eventToolsTTL = 5 * time.Minute
	// eventToolsPause is how long a core that gave no answer is left alone, so that
	// its absence slows one tools/list and not all.
	eventToolsPause = 10 * time.Second
	// maxEventTools bounds the clients that are remembered. Their names come from
	// outside.
	maxEventTools = 500
)

// An eventToolsKey is what the core's answer depends on (docs/wire.md §3).
type eventToolsKey struct {
	client, userAgent string
	native            bool // it declares the events extension
	signedIn          bool
	events            int // how many the app has defined
}

type keptEventTools struct {
	tools []*mcp.Tool
	until time.Time
}

// An eventToolCache keeps the descriptions of the event tools. It is safe for
// concurrent use.
type eventToolCache struct {
	mu      sync.Mutex
	kept    map[eventToolsKey]keptEventTools
	pause   time.Time // until then the core is not asked
	silence bool      // that the core does not answer was logged
}

// eventToolsFor are the event tools for who sent a request; none where the core
// has none, or cannot be asked. They are the caller's to change.
func (a *Attached) eventToolsFor(ctx context.Context, req mcp.Request) []*mcp.Tool {
	request, ok := req.(*mcp.ListToolsRequest)
	if !ok || request.Params == nil {
		request = &mcp.ListToolsRequest{Session: sessionOf(req), Params: &mcp.ListToolsParams{}, Extra: req.GetExtra()}
	}
	packed := packCall(request, request.Params.Meta)
	who, err := a.identify(ctx, request.Extra, packed.Client)
	if err != nil {
		return nil // it was logged, and who is behind the request decides
	}
	packed.User = who.User
	key := eventToolsKey{
		client: packed.Client, userAgent: packed.UserAgent, signedIn: packed.User != "",
		native: slices.Contains(packed.Extensions, eventsExtension), events: a.wake.manifest.count(),
	}
	cache := &a.wake.eventTools
	tools, known := cache.get(key)
	if !known {
		tools, err = a.wake.askEventTools(ctx, packed)
		if first := cache.put(key, tools, err); first {
			a.wake.log.Warn("the core gave no event tools, so clients do not see any", "error", err)
		}
	}
	copies := make([]*mcp.Tool, len(tools))
	for i, tool := range tools {
		copied := *tool
		copies[i] = &copied
	}
	return copies
}

func sessionOf(req mcp.Request) *mcp.ServerSession {
	session, _ := req.GetSession().(*mcp.ServerSession)
	return session
}

func (m *manifest) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.events)
}

// get returns what is kept; known is false when the core is to be asked.
func (c *eventToolCache) get(key eventToolsKey) (tools []*mcp.Tool, known bool) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept, ok := c.kept[key]; ok && now.Before(kept.until) {
		return kept.tools, true
	}
	return nil, now.Before(c.pause)
}

// put keeps an answer of the core, or that there was none. It reports whether
// that is news.
func (c *eventToolCache) put(key eventToolsKey, tools []*mcp.Tool, err error) (news bool) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		news, c.silence = !c.silence, true
		var refusal *Error
		if !errors.As(err, &refusal) || refusal.Status/100 != 4 || refusal.Status == http.StatusTooManyRequests {
			c.pause = now.Add(eventToolsPause)
			return news
		}
		// A core that does not know the question, or does not like this one, will not
		// do so soon.
	} else {
		c.silence = false
	}
	if c.kept == nil || len(c.kept) >= maxEventTools {
		c.kept = map[eventToolsKey]keptEventTools{}
	}
	c.kept[key] = keptEventTools{tools, now.Add(eventToolsTTL)}
	return news
}

// askEventTools asks the core, in a hurry: the client waits for its tools.
func (w *Wakeshift) askEventTools(ctx context.Context, packed call) ([]*mcp.Tool, error) {
	ctx, cancel := context.WithTimeout(ctx, hurriedTimeout)
	defer cancel()
	var answer struct {
		Tools []eventTool `json:"tools"`
	}
	body := map[string]any{"call": packed}
	err := w.request(ctx, coreRequest{method: http.MethodPost, path: "/event-tools", body: body, hurried: true}, &answer)
	if err != nil {
		return nil, err
	}
	var tools []*mcp.Tool
	for _, described := range answer.Tools {
		if slices.Contains(eventToolNames, described.Name) { // no other would be recognised when called
			tools = append(tools, described.tool())
		}
	}
	return tools, nil
}

// An eventTool is a tool as the core describes it.
type eventTool struct {
	Name        string         `json:"name"`
	Title       string         `json:"title"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"input_schema"`
	ReadOnly    bool           `json:"read_only"`
}

// tool is the tool with the arguments that all tools get.
func (t eventTool) tool() *mcp.Tool {
	schema := maps.Clone(t.InputSchema)
	if schema == nil {
		schema = map[string]any{"type": "object"}
	}
	own, _ := schema["properties"].(map[string]any)
	properties := make(map[string]any, len(own)+len(injectedArguments))
	maps.Copy(properties, own)
	for _, argument := range injectedArguments {
		properties[argument.name] = map[string]any{"type": "string", "description": argument.description}
	}
	schema["properties"] = properties
	harmless, closed := false, false
	return &mcp.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: schema,
		Annotations: &mcp.ToolAnnotations{
			ReadOnlyHint: t.ReadOnly, IdempotentHint: true, DestructiveHint: &harmless, OpenWorldHint: &closed,
		},
	}
}
