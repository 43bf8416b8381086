package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// board are the arguments of the event, and of the tool about it.
type board struct {
	Board string `json:"board" jsonschema:"the board's name: lowercase letters, digits, and . _ -"`
}

// notice is the payload of the event.
type notice struct {
	Title string `json:"title"`
}

// newHandler makes the server: an event, a tool that subscribes to it, prompts,
// resources, and the tools that suites call. One server serves all requests, over
// stateless streamable HTTP, so that what changes one request's list is noticed by
// another that listens.
func newHandler(opts ...wakeshift.Option) (http.Handler, *wakeshift.Wakeshift, error) {
	wake, err := wakeshift.New(opts...)
	if err != nil {
		return nil, nil, err
	}
	posted, err := wakeshift.DefineEvent(wake, "notice.posted", wakeshift.EventDef[board, notice]{
		Description: "A notice was posted on a board",
		Text:        func(n notice, b board) string { return fmt.Sprintf("On %s: %s", b.Board, n.Title) },
		Public:      true,
	})
	if err != nil {
		return nil, nil, errors.Join(err, wake.Close())
	}
	options := wakeshift.AttachOptions{Identify: func(_ context.Context, r *wakeshift.Request) wakeshift.Identity {
		return wakeshift.Identity{User: r.Header.Get("X-User")} // which proves nothing: a real app goes by a token
	}}
	server := mcp.NewServer(&mcp.Implementation{Name: "conformance", Version: "1.0.0"}, nil)
	wakeshift.AddTool(wake.Attach(server, options), &mcp.Tool{
		Name:        "follow_board",
		Description: "Follow a board: you are told of each notice that is posted on it.",
	}, func(ctx context.Context, call *wakeshift.ToolCall, in board) (*mcp.CallToolResult, any, error) {
		if _, err := posted.Subscribe(ctx, call, in); err != nil {
			return nil, nil, err
		}
		return says("Following " + in.Board + "."), nil, nil
	}, wakeshift.Subscribes(posted))
	addFixtures(server)
	addPrompts(server)
	addResources(server)
	one := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	mux := http.NewServeMux()
	mux.Handle("/mcp", wake.Handler(one, options))
	return http.NewCrossOriginProtection().Handler(mux), wake, nil
}

func says(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func addPrompts(server *mcp.Server) {
	server.AddPrompt(&mcp.Prompt{Name: "post_notice", Description: "Word a notice for a board.",
		Arguments: []*mcp.PromptArgument{{Name: "about", Required: true}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text := "Word a short notice about " + req.Params.Arguments["about"] + "."
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
		})
}

func addResources(server *mcp.Server) {
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
			{URI: req.Params.URI, MIMEType: "text/plain", Text: "No notices."},
		}}, nil
	}
	server.AddResource(&mcp.Resource{URI: "notices://all", Name: "notices", MIMEType: "text/plain"}, read)
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "notices://board/{board}", Name: "board", MIMEType: "text/plain"}, read)
}
