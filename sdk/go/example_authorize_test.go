package wakeshift_test

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// Authorize decides who may have which occurrences; OnSubscribe learns of those
// who do.
func ExampleEventDef_authorize() {
	ctx := context.Background()
	wake, stop := exampleWake()
	defer stop()

	type args struct {
		Game string `json:"game"`
	}
	type move struct {
		Field string `json:"field"`
	}
	players := map[string][]string{"g1": {"ada", "bob"}}
	moved := must(wakeshift.DefineEvent(wake, "game.moved", wakeshift.EventDef[args, move]{
		Description: "A player has moved",
		Text:        func(p move, a args) string { return fmt.Sprintf("Move in %s: %s", a.Game, p.Field) },
		Authorize: func(_ context.Context, who wakeshift.Subscriber, a args) (bool, error) {
			for _, player := range players[a.Game] {
				if player == who.User {
					return true, nil
				}
			}
			return false, nil
		},
		OnSubscribe: func(_ context.Context, s wakeshift.Subscription[args]) {
			fmt.Println(s.User, "follows", s.Args.Game)
		},
	}))

	follow := func(ctx context.Context, call *wakeshift.ToolCall, in args) (*mcp.CallToolResult, any, error) {
		_, err := moved.Subscribe(ctx, call, in)
		return nil, nil, err
	}
	for _, user := range []string{"ada", "eve"} {
		server := mcp.NewServer(&mcp.Implementation{Name: "games", Version: "1.0.0"}, nil)
		attached := wake.Attach(server, wakeshift.AttachOptions{
			Identify: func(context.Context, *wakeshift.Request) wakeshift.Identity { return wakeshift.Identity{User: user} },
		})
		wakeshift.AddTool(attached, &mcp.Tool{Name: "follow"}, follow)
		exampleCall(ctx, server, "follow", map[string]any{"game": "g1"})
	}
	// Output:
	// ada follows g1
	// You will be woken. session_key="session-1"
	// wakeshift: forbidden (403): not allowed to subscribe to game.moved with these arguments
}
