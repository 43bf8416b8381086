package wakeshift_test

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// A tool subscribes the conversation that calls it. Hours later the app emits, and
// the agent is woken.
func ExampleAddTool() {
	ctx := context.Background()
	wake, stop := exampleWake()
	defer stop()

	type args struct {
		Job string `json:"job"`
	}
	type crawl struct {
		Pages int `json:"pages"`
	}
	finished := must(wakeshift.DefineEvent(wake, "crawl.finished", wakeshift.EventDef[args, crawl]{
		Description: "A crawl finished",
		Text:        func(p crawl, a args) string { return fmt.Sprintf("Crawl %s finished: %d pages", a.Job, p.Pages) },
	}))

	server := mcp.NewServer(&mcp.Implementation{Name: "crawler", Version: "1.0.0"}, nil)
	attached := wake.Attach(server, wakeshift.AttachOptions{})
	watch := func(ctx context.Context, call *wakeshift.ToolCall, in args) (*mcp.CallToolResult, any, error) {
		if _, err := finished.Subscribe(ctx, call, in); err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Watching " + in.Job + "."}}}, nil, nil
	}
	wakeshift.AddTool(attached, &mcp.Tool{Name: "watch_crawl", Description: "Watch a crawl."}, watch, wakeshift.Subscribes(finished))

	exampleCall(ctx, server, "watch_crawl", map[string]any{"job": "j1"})
	emitted := must(finished.Emit(ctx, args{Job: "j1"}, crawl{Pages: 12}))
	fmt.Println("conversations:", emitted.Matched)
	// Output:
	// Watching j1.
	// You will be woken. session_key="session-1"
	// conversations: 1
}
