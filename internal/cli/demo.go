package cli

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/internal/demo"
)

func (p *program) demo() *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See an agent woken, in a few seconds",
		Long: "Runs a core, an example app, and a client that says it is Claude Code: it calls a tool, runs the command the result asks\n" +
			"for, and is woken by an event. Then says how to connect a real agent, and serves until interrupted. Needs sh and curl,\n" +
			"as Claude Code does.",
		Example: "  rouse demo\n  rouse demo --once",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			logger := slog.New(slog.NewTextHandler(p.env.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
			return demo.Run(ctx, demo.Options{Out: p.env.Stdout, Once: once, Watch: p.shows(p.env.Stdout), Logger: logger})
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "end by itself once the agent was woken")
	return cmd
}
