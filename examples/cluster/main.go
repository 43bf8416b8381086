// Command cluster is a tiny balancer for the example in cluster.sh, which runs
// three cores on one PostgreSQL database:
//
//	go run ./examples/cluster --listen 127.0.0.1:8787 127.0.0.1:8788 127.0.0.1:8789 127.0.0.1:8790
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/rouse-dev/rouse/examples/cluster/balancer"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8787", "`address` to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// run passes connections on to the nodes until the context ends.
func run(ctx context.Context, listen string, nodes []string) error {
	if len(nodes) == 0 {
		return errors.New("name the nodes' addresses")
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	return balancer.New(nodes...).Serve(ctx, listener)
}
