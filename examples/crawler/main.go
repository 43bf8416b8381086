// Command crawler is an example of an app that wakes agents: a crawler's MCP
// server. See the package crawler for what it offers.
//
//	WAKESHIFT_KEY=wst_… go run ./examples/crawler --http 127.0.0.1:8080
//	WAKESHIFT_KEY=wst_… go run ./examples/crawler --stdio
//
// With --stateful, HTTP clients of the revisions before 2026-07-28 get sessions.
// With --http and --stdio, MCP is served over stdio, and crawls are reported over
// HTTP. The key and, where it is not the default one, the core's address come from
// the environment: WAKESHIFT_KEY and WAKESHIFT_CORE.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rouse-dev/rouse/examples/crawler/crawler"
)

func main() {
	address := flag.String("http", "", "serve MCP at http://`ADDR`/mcp")
	stdio := flag.Bool("stdio", false, "serve MCP over standard input and output")
	stateful := flag.Bool("stateful", false, "give HTTP clients of older revisions sessions")
	flag.Parse()
	if *address == "" && (!*stdio || *stateful) || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *address, *stdio, *stateful); err != nil {
		fmt.Fprintln(os.Stderr, "crawler:", err)
		os.Exit(1)
	}
}

// run serves until the context ends, or the standard input with stdio.
func run(ctx context.Context, address string, stdio, stateful bool) (err error) {
	app, err := crawler.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// Streams end with the app, and nothing below returns before they have.
	defer context.AfterFunc(ctx, func() { _ = app.Close() })() // its error comes again, above
	served := make(chan error, 1)
	if address == "" {
		served <- nil
	} else {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "crawler: serving http://%s/mcp\n", listener.Addr())
		handler := app.Handler()
		if stateful {
			handler = app.StatefulHandler()
		}
		go func() { served <- serve(ctx, listener, handler) }()
	}
	if stdio {
		err = app.Server().Run(ctx, app.Transport(&mcp.StdioTransport{}))
		if ctx.Err() != nil {
			err = nil // asked to stop
		}
		stop()
	}
	return errors.Join(err, <-served)
}

// serve serves HTTP until the context ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(patience)
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
