package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rouse-dev/rouse/internal/config"
	"github.com/rouse-dev/rouse/internal/refusal"
)

// An Env is what a command sees of the process it runs in.
type Env struct {
	Args    []string // without the program's name
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Environ []string // NAME=value, as [os.Environ]
}

// Exit statuses. A command that `rouse dev` ran gives its own.
const (
	statusOK     = 0
	statusFailed = 1
	statusUsage  = 2
)

// Run runs one command and returns the exit status. When ctx ends the command stops as if it were interrupted. Commands that
// go on for long handle interrupts themselves.
func Run(ctx context.Context, env Env) (status int) {
	p := &program{env: env}
	root := p.root()
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	var ended exit
	var misused usageError
	switch {
	case err == nil:
		return statusOK
	case errors.As(err, &ended):
		return int(ended)
	case errors.As(err, &misused), strings.HasPrefix(err.Error(), "unknown command"):
		p.sayError(err)
		return statusUsage
	}
	p.sayError(err)
	return statusFailed
}

// A program is one run of the command line.
type program struct {
	env    Env
	json   bool   // --json
	config string // --config
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "rouse",
		Short: "Wake AI agents when something happens",
		Long: "Rouse wakes AI agents: an app's MCP server defines events, an agent that calls one of its tools is subscribed, and\n" +
			"when the app emits, the agent is woken in its own conversation.",
		Example:       "  rouse demo                     # see it work\n  rouse dev -- npm test          # a fresh core for a test run\n  rouse serve                    # a core to stay",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("rouse {{.Version}}\n")
	root.PersistentFlags().BoolVar(&p.json, "json", false, "answer in JSON, for scripts")
	root.PersistentFlags().StringVar(&p.config, "config", "", "configuration `file`, TOML (default: ROUSE_CONFIG, else rouse.toml in the user's or the system's configuration directory)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath())}
	})
	root.AddCommand(p.serve(), p.app(), p.key(), p.emit(), p.subscriptions(), p.deliveries(), p.tail(), p.backup(), p.restore(), p.check(), p.dev(), p.demo(), p.docs())
	return root
}

// version is that of the module the program was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown version)"
	}
	return info.Main.Version
}

// An exit ends the program with a status, everything having been said.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// A usageError is a command line that cannot be understood.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// sayError says what went wrong.
func (p *program) sayError(err error) {
	code, message := "failed", err.Error()
	no := refusal.Of(err)
	if no != nil {
		code, message = string(no.Code), no.Message
	}
	if p.json {
		body, _ := json.Marshal(map[string]any{"error": map[string]string{"code": code, "message": message}}) // strings always encode
		fmt.Fprintf(p.env.Stderr, "%s\n", body)
		return
	}
	fmt.Fprintln(p.env.Stderr, "rouse:", message)
	if no != nil {
		if advice := refusal.Lookup(no.Code).Advice; advice != "" {
			fmt.Fprintln(p.env.Stderr, "      ", advice)
		}
	}
}

// lookup is a variable of the environment; the last of several counts, as for the commands a shell runs.
func (p *program) lookup(name string) (value string, ok bool) {
	for _, variable := range p.env.Environ {
		if n, v, _ := strings.Cut(variable, "="); n == name {
			value, ok = v, true
		}
	}
	return value, ok
}

// getenv is a variable of the environment, empty when there is none.
func (p *program) getenv(name string) string {
	value, _ := p.lookup(name)
	return value
}

// resolve gives settings that are no flags their values from the environment and the configuration file.
func (p *program) resolve(flags *pflag.FlagSet) error {
	return config.Resolve(flags, p.lookup, p.config)
}

// interruptible is a context that ends at the first interrupt. From then on another one ends the process at once.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	heard := notIgnored(interrupts)
	if len(heard) == 0 {
		return context.WithCancel(ctx)
	}
	ctx, stop := signal.NotifyContext(ctx, heard...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// notIgnored leaves out the signals that this process was started to ignore, as by nohup: they stay ignored.
func notIgnored(signals []os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(signals), signal.Ignored)
}

// takes checks a command's positional arguments by number, and names them where they are missing.
func takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usageError{fmt.Errorf("%s is missing: see `%s --help`", strings.Join(names[len(args):], " and "), cmd.CommandPath())}
		case len(args) > len(names):
			return usageError{fmt.Errorf("%q is one argument too many: see `%s --help`", args[len(names)], cmd.CommandPath())}
		}
		return nil
	}
}

// group is a command that only has others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, RunE: func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usageError{fmt.Errorf("there is no `%s %s`: see `%s --help`", cmd.CommandPath(), args[0], cmd.CommandPath())}
		}
		return cmd.Help()
	}}
	cmd.AddCommand(commands...)
	return cmd
}
