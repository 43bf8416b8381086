package crawler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// maxReports bounds how many finished crawls are remembered for watches.
const maxReports = 10_000

// Job are the arguments of the crawls' events, and of the tools.
type Job struct {
	Job string `json:"job" jsonschema:"the crawl's id: lowercase letters, digits, and . _ -"`
}

// Site are the arguments of site.updated.
type Site struct {
	Site string `json:"site" jsonschema:"the site's name, such as example.com"`
}

// Crawl is the payload of all events.
type Crawl struct {
	Pages int `json:"pages"`
}

// A Crawler is the app. Make one with [New], serve its [Crawler.Handler] or
// [Crawler.Server], and [Crawler.Close] it. It is safe for concurrent use.
type Crawler struct {
	wake     *wakeshift.Wakeshift
	finished *wakeshift.Event[Job, Crawl]
	polled   *wakeshift.Event[Job, Crawl]
	updated  *wakeshift.Event[Site, Crawl]
	schemas  *mcp.SchemaCache // shared by the servers made for each request

	mu      sync.Mutex
	reports map[string]Crawl // finished crawls, by job
}

// New makes a crawler. Key and core come from the environment unless options give
// them, see [wakeshift.New].
func New(opts ...wakeshift.Option) (*Crawler, error) {
	wake, err := wakeshift.New(opts...)
	if err != nil {
		return nil, err
	}
	c := &Crawler{wake: wake, schemas: mcp.NewSchemaCache(), reports: map[string]Crawl{}}
	if err := c.define(); err != nil {
		return nil, errors.Join(err, wake.Close())
	}
	return c, nil
}

func (c *Crawler) define() (err error) {
	aboutCrawl := func(p Crawl, a Job) string { return fmt.Sprintf("Crawl %s finished: %d pages", a.Job, p.Pages) }
	c.finished, err = wakeshift.DefineEvent(c.wake, "crawl.finished", wakeshift.EventDef[Job, Crawl]{
		Description: "A crawl finished",
		Text:        aboutCrawl,
	})
	if err != nil {
		return err
	}
	c.polled, err = wakeshift.DefineEvent(c.wake, "crawl.polled", wakeshift.EventDef[Job, Crawl]{
		Description: "A crawl was found to have finished",
		Text:        aboutCrawl,
	})
	if err != nil {
		return err
	}
	c.updated, err = wakeshift.DefineEvent(c.wake, "site.updated", wakeshift.EventDef[Site, Crawl]{
		Description: "A site was crawled again",
		Text:        func(p Crawl, a Site) string { return fmt.Sprintf("Site %s updated: %d pages", a.Site, p.Pages) },
		Public:      true,
	})
	return err
}

// Close stops the crawler's watches and its connections to the core.
func (c *Crawler) Close() error { return c.wake.Close() }

// options say who a user is. The header X-User proves nothing: a real app goes by
// a verified token.
func options() wakeshift.AttachOptions {
	return wakeshift.AttachOptions{
		Identify: func(_ context.Context, r *wakeshift.Request) wakeshift.Identity {
			return wakeshift.Identity{User: r.Header.Get("X-User")}
		},
	}
}

// Server makes an MCP server with the crawler's tools and events. It is cheap
// enough to be made for every request.
func (c *Crawler) Server() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "crawler", Version: "1.0.0"}, &mcp.ServerOptions{SchemaCache: c.schemas})
	attached := c.wake.Attach(server, options())
	wakeshift.AddTool(attached, &mcp.Tool{
		Name:        "watch_crawl",
		Description: "Watch a crawl: you are told when it has finished.",
	}, c.watchCrawl, wakeshift.Subscribes(c.finished))
	wakeshift.AddTool(attached, &mcp.Tool{
		Name:        "watch_polled_crawl",
		Description: "Watch a crawl that must be polled: you are told once, when it is found to have finished.",
	}, c.watchPolledCrawl, wakeshift.Subscribes(c.polled))
	return server
}

func (c *Crawler) watchCrawl(ctx context.Context, call *wakeshift.ToolCall, in Job) (*mcp.CallToolResult, any, error) {
	if _, err := c.finished.Subscribe(ctx, call, in); err != nil {
		return nil, nil, err
	}
	return watching(in), nil, nil
}

func (c *Crawler) watchPolledCrawl(ctx context.Context, call *wakeshift.ToolCall, in Job) (*mcp.CallToolResult, any, error) {
	if _, err := c.polled.Subscribe(ctx, call, in, wakeshift.Once()); err != nil {
		return nil, nil, err
	}
	check := func(context.Context) (*Crawl, error) { return c.report(in.Job), nil }
	if err := c.polled.Watch(in, check, wakeshift.WatchOptions{Every: time.Second}); err != nil {
		return nil, nil, err
	}
	return watching(in), nil, nil
}

func watching(job Job) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Watching crawl " + job.Job + "."}}}
}

// report returns what was reported of a crawl, or nil.
func (c *Crawler) report(job string) *Crawl {
	c.mu.Lock()
	defer c.mu.Unlock()
	if crawl, ok := c.reports[job]; ok {
		return &crawl
	}
	return nil
}

// keep remembers a report; false if there are too many.
func (c *Crawler) keep(job string, crawl Crawl) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.reports[job]; !known && len(c.reports) >= maxReports {
		return false
	}
	c.reports[job] = crawl
	return true
}

// Handler serves MCP at /mcp, over stateless streamable HTTP for clients of the
// revisions 2026-07-28 and 2025-11-25, and takes the reports of crawls and sites.
func (c *Crawler) Handler() http.Handler {
	mcpHandler := mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return c.Server() },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true},
	)
	mux := http.NewServeMux()
	mux.Handle("/mcp", c.wake.Handler(mcpHandler, options()))
	mux.HandleFunc("POST /crawls/{job}", c.crawlFinished)
	mux.HandleFunc("POST /sites/{site}", c.siteUpdated)
	return http.NewCrossOriginProtection().Handler(mux) // a page in a browser has no business here
}
