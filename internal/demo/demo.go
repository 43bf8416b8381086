package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rouse-dev/rouse/examples/crawler/crawler"
	"github.com/rouse-dev/rouse/internal/server"
	"github.com/rouse-dev/rouse/internal/trace"
	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// Options of a demo. Out is required.
type Options struct {
	Out    io.Writer               // where each step is told
	Once   bool                    // end after it, instead of serving until ctx ends
	Watch  func(trace.Entry) error // shows what the core does while it serves; nil: nothing is shown
	Logger *slog.Logger            // nil: discards
}

// patience bounds each step that waits for something; all of them together take well under a second.
const patience = 15 * time.Second

// job is the crawl that the demo waits for.
const job = "j1"

// A demo is one run.
type demo struct {
	Options
	core    *server.Server
	app     *crawler.Crawler
	site    string // base address of the crawler
	steps   int
	begun   time.Time
	cleanup []func() error // in the order of what was made
}

// Run shows the main job and, unless told to do it once, serves until ctx ends. The end of ctx is no error.
func Run(ctx context.Context, o Options) (err error) {
	d := &demo{Options: o, begun: time.Now()}
	defer func() {
		for i := len(d.cleanup) - 1; i >= 0; i-- {
			err = errors.Join(err, d.cleanup[i]())
		}
	}()
	if err := checkTools(); err != nil {
		return err
	}
	follower, err := d.serve(ctx)
	if err == nil {
		defer follower.Close()
		err = d.wake(ctx, follower)
	}
	if err == nil && !o.Once {
		d.invite()
		err = d.watch(ctx, follower)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// step tells what was done.
func (d *demo) step(format string, args ...any) {
	d.steps++
	fmt.Fprintf(d.Out, "%d  %s\n", d.steps, fmt.Sprintf(format, args...))
}

// more adds a line to what was told.
func (d *demo) more(format string, args ...any) {
	fmt.Fprintf(d.Out, "   %s\n", fmt.Sprintf(format, args...))
}

// serve starts the core and the app, and follows what the core does.
func (d *demo) serve(ctx context.Context) (*trace.Follower, error) {
	data, err := os.MkdirTemp("", "rouse-demo-")
	if err != nil {
		return nil, fmt.Errorf("making a temporary directory: %w", err)
	}
	d.cleanup = append(d.cleanup, func() error { return os.RemoveAll(data) })
	d.core, err = server.Start(ctx, server.Options{Data: data, Listen: "127.0.0.1:0", PrivateWebhooks: true, Logger: d.Logger})
	if err != nil {
		return nil, err
	}
	d.cleanup = append(d.cleanup, d.core.Shutdown)
	d.step("A core is running at %s", d.core.URL())
	if _, err := d.core.Core().CreateApp(ctx, "crawler", "Crawler"); err != nil {
		return nil, err
	}
	_, key, err := d.core.Core().CreateKey(ctx, "crawler", "")
	if err != nil {
		return nil, err
	}
	if d.app, err = crawler.New(wakeshift.WithCore(d.core.URL()), wakeshift.WithKey(key.Reveal())); err != nil {
		return nil, err
	}
	d.cleanup = append(d.cleanup, d.app.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serving the app: %w", err)
	}
	site := &http.Server{Handler: d.app.Handler(), ReadHeaderTimeout: patience}
	served := make(chan error, 1)
	go func() { served <- site.Serve(listener) }()
	d.cleanup = append(d.cleanup, func() error {
		err := site.Close()
		<-served
		return err
	})
	d.site = "http://" + listener.Addr().String()
	d.step("An app, the crawler of examples/crawler, is an MCP server at %s/mcp", d.site)
	return d.core.Core().Feed().Follow(), nil
}

// monitorCommand finds the command in a tool result, as the public docs page does.
var monitorCommand = regexp.MustCompile(`(?s)with this command: (u='.*?; done) \.`)

// wake calls the tool, runs the command it asks for, has the event happen, and waits for the line.
func (d *demo) wake(ctx context.Context, follower *trace.Follower) error {
	text, err := d.callTool(ctx)
	if err != nil {
		return fmt.Errorf("calling the tool: %w", err)
	}
	found := monitorCommand.FindStringSubmatch(text)
	if found == nil {
		return fmt.Errorf("the tool's result asks for no Monitor command: %q", text)
	}
	d.step("An MCP client that says it is Claude Code calls the tool watch_crawl {%q: %q}", "job", job)
	d.more("its result asks the agent to start its Monitor tool with a command:")
	d.more("%s", found[1])
	monitor, err := startMonitor(found[1])
	if err != nil {
		return err
	}
	defer monitor.stop()
	if err := connected(ctx, follower); err != nil {
		return err
	}
	d.step("sh runs that command, as the Monitor does; the stream is open, and the agent may sleep")
	begun := time.Now()
	matched, err := d.report(ctx)
	if err != nil {
		return fmt.Errorf("reporting the crawl: %w", err)
	}
	d.step("The crawl finishes: the app emits crawl.finished, which matches %d conversation", matched)
	line, err := monitor.next(ctx)
	if err != nil {
		return err
	}
	took := time.Since(begun)
	if !strings.Contains(line, "Crawl "+job+" finished: 12 pages") {
		return fmt.Errorf("the wrong line arrived: %s", line)
	}
	d.step("The line that wakes the agent arrives, %.1f ms after the emit began:", float64(took.Microseconds())/1000)
	d.more("%s", line)
	fmt.Fprintf(d.Out, "\nAll of it took %.2f s.\n", time.Since(d.begun).Seconds())
	return nil
}

// callTool calls the app's tool as Claude Code would, and returns the text of the result.
func (d *demo) callTool(ctx context.Context) (text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "claude-code", Version: "2.1.0"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: d.site + "/mcp"}, nil)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "watch_crawl", Arguments: map[string]any{"job": job}})
	if err != nil {
		return "", err
	}
	for _, content := range result.Content {
		if part, ok := content.(*mcp.TextContent); ok {
			text += part.Text + "\n"
		}
	}
	if result.IsError {
		return "", errors.New(strings.TrimSpace(text))
	}
	return text, nil
}

// connected waits for the Monitor's stream to open.
func connected(ctx context.Context, follower *trace.Follower) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return fmt.Errorf("the Monitor command has not connected within %s: try it by hand in another terminal", patience)
		case entry := <-follower.C():
			if entry.Kind == trace.Connected {
				return nil
			}
		}
	}
}

// report tells the app that the crawl has finished, which it emits. It returns how many conversations that is for.
func (d *demo) report(ctx context.Context) (matched int, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.site+"/crawls/"+job, bytes.NewReader([]byte(`{"pages":12}`)))
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return 0, err
	}
	var answer struct{ Matched int }
	if response.StatusCode != http.StatusOK || json.Unmarshal(body, &answer) != nil {
		return 0, fmt.Errorf("the app answered %s: %s", response.Status, bytes.TrimSpace(body))
	}
	return answer.Matched, nil
}

// invite says how to connect a real agent.
func (d *demo) invite() {
	fmt.Fprintf(d.Out, `
Everything is still running. To have a real agent woken:

  claude mcp add --transport http crawler %[1]s/mcp
  claude "Watch crawl j2, and tell me how many pages it had when it is done."

then, when it waits, finish the crawl:

  curl -d '{"pages":34}' %[1]s/crawls/j2

What the core does is shown below. ^C ends it and leaves nothing behind.

`, d.site)
}

// watch shows what the core does until ctx ends.
func (d *demo) watch(ctx context.Context, follower *trace.Follower) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-d.core.Failed():
			return err
		case entry := <-follower.C():
			if d.Watch == nil {
				continue
			}
			if err := d.Watch(entry); err != nil {
				return err
			}
		}
	}
}
