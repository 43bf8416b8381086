package wakeshift_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// exampleWake is what wakeshift.New() makes of the environment, with a core in
// this process.
func exampleWake() (wake *wakeshift.Wakeshift, stop func()) {
	core := newFakeCore()
	server := httptest.NewServer(core)
	core.URL = server.URL
	wake = must(wakeshift.New(wakeshift.WithKey(core.key), wakeshift.WithCore(core.URL)))
	return wake, func() {
		if err := wake.Close(); err != nil {
			log.Print(err)
		}
		server.Close()
	}
}

// exampleCall calls a server's tool as an agent's client does, and prints the
// texts of the result.
func exampleCall(ctx context.Context, server *mcp.Server, tool string, arguments map[string]any) {
	ours, theirs := mcp.NewInMemoryTransports()
	must(server.Connect(ctx, ours, nil))
	session := must(mcp.NewClient(&mcp.Implementation{Name: "claude-code", Version: "2.1.0"}, nil).Connect(ctx, theirs, nil))
	defer session.Close()
	res := must(session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments}))
	fmt.Println(strings.Join(texts(res), "\n"))
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
