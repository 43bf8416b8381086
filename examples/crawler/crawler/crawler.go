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

// maxSummary is how much of a summary an agent is told, in characters. The whole
// of it is in the payload.
const maxSummary = 200

// Job are the arguments of the crawls' events, and of the tools.
type Job struct {
	Job string `json:"job" jsonschema:"the crawl's id: lowercase letters, digits, and . _ -"`
}

// Site are the arguments of site.updated.
type Site struct {
	Site string `json:"site" jsonschema:"the site's name, such as example.com"`
}

// Crawl is the payload of the crawls' events.
type Crawl struct {
	Pages int `json:"pages"`
}

// Update is the payload of site.updated.
type Update struct {
	Pages   int    `json:"pages"`
	Summary string `json:"summary,omitempty" jsonschema:"what changed, in any words"`
}

// A Crawler is the app. Make one with [New], serve its [Crawler.Handler] or
// [Crawler.Server], and [Crawler.Close] it. It is safe for concurrent use.
type Crawler struct {
	wake     *wakeshift.Wakeshift
	finished *wakeshift.Event[Job, Crawl]
	polled   *wakeshift.Event[Job, Crawl]
	updated  *wakeshift.Event[Site, Update]
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
	c.updated, err = wakeshift.DefineEvent(c.wake, "site.updated", wakeshift.EventDef[Site, Update]{
		Description: "A site was crawled again",
		Text:        aboutSite,
		Public:      true,
	})
	return err
}

// aboutSite tells of an update, with the beginning of its summary.
func aboutSite(p Update, a Site) string {
	text := fmt.Sprintf("Site %s updated: %d pages", a.Site, p.Pages)
	if p.Summary == "" {
		return text
	}
	summary := []rune(p.Summary)
	if len(summary) > maxSummary {
		summary = append(summary[:maxSummary], '…')
	}
	return text + ". " + string(summary)
}

// Close stops the crawler's watches, streams and connections to the core.
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

// Handler serves MCP at /mcp, over stateless streamable HTTP for clients of every
// revision, and takes the reports of crawls and sites.
func (c *Crawler) Handler() http.Handler {
	return c.handler(&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
}

// StatefulHandler is Handler with sessions for clients of the revisions before
// 2026-07-28.
func (c *Crawler) StatefulHandler() http.Handler {
	return c.handler(&mcp.StreamableHTTPOptions{SessionTimeout: time.Hour})
}

func (c *Crawler) handler(with *mcp.StreamableHTTPOptions) http.Handler {
	server := func(*http.Request) *mcp.Server { return c.Server() }
	mux := http.NewServeMux()
	mux.Handle("/mcp", c.wake.HTTPHandler(server, with, options()))
	mux.HandleFunc("POST /crawls/{job}", c.crawlFinished)
	mux.HandleFunc("POST /sites/{site}", c.siteUpdated)
	return http.NewCrossOriginProtection().Handler(mux) // a page in a browser has no business here
}

// Transport wraps the transport of a server that does not serve HTTP.
func (c *Crawler) Transport(t mcp.Transport) mcp.Transport { return c.wake.Transport(t) }
