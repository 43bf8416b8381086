package wakeshift_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// A public event over stateless streamable HTTP, with a server for every request:
// clients of MCP Events poll it by themselves.
func ExampleWakeshift_Handler() {
	wake, stop := exampleWake()
	defer stop()

	type args struct {
		Site string `json:"site"`
	}
	type update struct {
		Pages int `json:"pages"`
	}
	must(wakeshift.DefineEvent(wake, "site.updated", wakeshift.EventDef[args, update]{
		Description: "A site was crawled again",
		Text:        func(p update, a args) string { return fmt.Sprintf("%s: %d pages", a.Site, p.Pages) },
		Public:      true,
	}))

	options := wakeshift.AttachOptions{
		// A real app goes by r.Token, which its sign-in has verified.
		Identify: func(_ context.Context, r *wakeshift.Request) wakeshift.Identity {
			return wakeshift.Identity{User: r.Header.Get("X-User")}
		},
	}
	schemas := mcp.NewSchemaCache() // shared, so that a server costs little
	newServer := func(*http.Request) *mcp.Server {
		server := mcp.NewServer(&mcp.Implementation{Name: "crawler", Version: "1.0.0"}, &mcp.ServerOptions{SchemaCache: schemas})
		wake.Attach(server, options)
		return server
	}
	handler := mcp.NewStreamableHTTPHandler(newServer, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	site := httptest.NewServer(wake.Handler(handler, options))
	defer site.Close()

	// A client of MCP Events.
	client := mcp.NewClient(&mcp.Implementation{Name: "events-client", Version: "1.0.0"}, nil)
	if err := mcp.AddSendingCustomMethod[*pollParams, *pollResult](client, "events/poll"); err != nil {
		log.Fatal(err)
	}
	session := must(client.Connect(context.Background(), &mcp.StreamableClientTransport{Endpoint: site.URL}, nil))
	defer session.Close()
	fmt.Println(session.InitializeResult().Capabilities.Extensions["io.modelcontextprotocol/events"])
	params := &pollParams{Name: "site.updated", Arguments: map[string]string{"site": "example.com"}}
	polled := must(mcp.CallCustomMethod[*pollParams, *pollResult](context.Background(), session, "events/poll", params))
	fmt.Println(polled.Cursor, len(polled.Events))
	// Output:
	// map[listChanged:true]
	// c1 0
}

type pollParams struct {
	mcp.ParamsBase
	Name      string            `json:"name"`
	Arguments map[string]string `json:"arguments"`
	Cursor    *string           `json:"cursor"`
}

type pollResult struct {
	mcp.ResultBase
	Events []map[string]any `json:"events"`
	Cursor string           `json:"cursor"`
}
