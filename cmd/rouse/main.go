// Command rouse wakes AI agents: it runs the core and administers it. `rouse --help` says how.
package main

import (
	"context"
	"os"

	"github.com/rouse-dev/rouse/internal/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), cli.Env{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ()}))
}
