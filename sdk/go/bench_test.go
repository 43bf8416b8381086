package wakeshift_test

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// What a server made for every request costs, with the app attached and one tool.
func BenchmarkServerPerRequest(b *testing.B) {
	core := startCore(b)
	wake := newWake(b, core)
	finished := define(b, wake, "crawl.finished", crawlEvent())
	options := &mcp.ServerOptions{SchemaCache: mcp.NewSchemaCache()}
	b.ReportAllocs()
	for b.Loop() {
		server := mcp.NewServer(&mcp.Implementation{Name: "crawler"}, options)
		attached := wake.Attach(server, wakeshift.AttachOptions{})
		wakeshift.AddTool(attached, &mcp.Tool{Name: "watch"}, subscribing(finished))
	}
}

// What an emit costs in the app, with a core in the same process.
func BenchmarkEmit(b *testing.B) {
	core := offlineCore()
	wake := newWake(b, core, wakeshift.WithHTTPClient(core.client()))
	finished := define(b, wake, "crawl.finished", crawlEvent())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := finished.Emit(b.Context(), crawlArgs{"j1"}, crawl{12}); err != nil {
			b.Fatal(err)
		}
	}
}
