// Package wakeshift lets an MCP server wake the agents that call it.
//
// An app defines events ([DefineEvent]), attaches itself to its MCP server
// ([Wakeshift.Attach]), subscribes the conversations that call its tools
// ([AddTool], [Event.Subscribe]) and emits what happens ([Event.Emit]), hours
// later if need be. The core behind it finds the conversation again and wakes
// it, whatever program it runs in. Clients that speak MCP Events
// (io.modelcontextprotocol/events) are served on the same server; the agents of
// others have the tools subscribe_events, unsubscribe_events and
// list_subscriptions for the app's public events.
//
// A whole app:
//
//	wake, err := wakeshift.New() // reads WAKESHIFT_KEY and WAKESHIFT_CORE
//	finished, err := wakeshift.DefineEvent(wake, "crawl.finished", wakeshift.EventDef[CrawlArgs, Crawl]{
//		Description: "A crawl finished",
//		Text:        func(p Crawl, a CrawlArgs) string { return fmt.Sprintf("Crawl %s: %d pages", a.Job, p.Pages) },
//	})
//	attached := wake.Attach(server, wakeshift.AttachOptions{})
//	wakeshift.AddTool(attached, &mcp.Tool{Name: "watch_crawl"}, watchCrawl, wakeshift.Subscribes(finished))
//	...
//	finished.Emit(ctx, CrawlArgs{Job: "j1"}, Crawl{Pages: 12})
//
// # What belongs here
//
// The core decides, this package carries. What it owns is what is the app's:
// its key and the assertions signed with it, schemas and the checks against
// them, the rendering of text, the hooks that say who a user is and what they
// may have, and the polling of [Event.Watch]. It packs who is calling and
// applies what the core answers. All streams of clients (events/stream) share one
// connection to the core, which is made again when it breaks.
//
// Which program an agent runs in, how it is woken, in which words, and with
// which error codes of MCP Events a client is refused: all of that is the
// core's and does not belong here. The JSON-RPC codes known to this package are
// the base protocol's -32602, -32603 and -32020.
//
// # Concurrency and errors
//
// Everything is safe for concurrent use unless it says otherwise. Errors of the
// core are [*Error]; see [IsCode]. A panic in one of the app's hooks (Identify,
// Authorize, OnSubscribe, Text, a watch's check) becomes an error and is logged;
// a panic in a tool's handler is left to the MCP SDK, which lets it end the
// process. No key, session key, token or payload is ever logged or put into an
// error.
package wakeshift
