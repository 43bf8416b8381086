// Command conformance is an example of an MCP server that has a bit of everything,
// with Wakeshift attached: public suites of checks for MCP servers run against it.
// See server.go for what it offers.
//
//	WAKESHIFT_KEY=wst_… go run ./examples/conformance --http 127.0.0.1:8080
//	npx @modelcontextprotocol/conformance server --url http://127.0.0.1:8080/mcp --scenario server-stateless
//
// The key and, where it is not the default one, the core's address come from the
// environment: WAKESHIFT_KEY and WAKESHIFT_CORE.
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
)

func main() {
	address := flag.String("http", "127.0.0.1:8080", "serve MCP at http://`ADDR`/mcp")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *address); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// run serves until the context ends.
func run(ctx context.Context, address string) (err error) {
	handler, wake, err := newHandler()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, wake.Close()) }()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "conformance: serving http://%s/mcp\n", listener.Addr())
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
