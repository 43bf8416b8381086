package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/internal/config"
	"github.com/rouse-dev/rouse/internal/postgres"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/server"
)

// maxDevApps bounds --apps: each is a variable of the environment.
const maxDevApps = 100

func (p *program) dev() *cobra.Command {
	d := &dev{program: p}
	cmd := &cobra.Command{
		Use:   "dev [flags] [-- COMMAND [ARG…]]",
		Short: "A fresh core for development and tests",
		Long: "Starts a core in a temporary directory on a free port of the loopback interface, with an app and a key, and with webhooks\n" +
			"to loopback addresses allowed. COMMAND is run with WAKESHIFT_CORE, WAKESHIFT_KEY (WAKESHIFT_KEY_2 … for more apps) and\n" +
			"ROUSE_DATA set; signals are passed on to it and its exit status is this command's. In the end nothing is left behind.\n\n" +
			"Without COMMAND the variables are printed, and the core serves until interrupted, showing what `rouse tail` shows.",
		Example: "  rouse dev -- go test ./...\n" +
			"  rouse dev --apps 2 -- ./acceptance-test\n" +
			"  rouse dev                                  # then export what it prints, elsewhere\n" +
			"  rouse dev --data ./dev-core --listen 127.0.0.1:8787\n" +
			"  rouse dev --database postgres://localhost/postgres -- go test ./...",
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); len(args) > 0 && dash != 0 {
				return usageError{fmt.Errorf("put -- before the command to run: rouse dev -- %s", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := config.CheckCommandLine(cmd.Flags()); err != nil {
				return err
			}
			return d.run(cmd.Context(), args)
		},
	}
	cmd.Flags().IntVar(&d.apps, "apps", 1, "how many apps to make")
	cmd.Flags().StringVar(&d.data, "data", "", "data `directory` to use and to keep (default: a temporary one)")
	cmd.Flags().StringVar(&d.database, "database", "", "`address` of a PostgreSQL database: one of its own is made beside it, and dropped in the end")
	cmd.Flags().StringVar(&d.listen, "listen", "127.0.0.1:0", "`address` to listen on, host:port")
	return cmd
}

// dev is one run of `rouse dev`.
type dev struct {
	*program
	apps                   int
	data, listen, database string
}

func (d *dev) run(ctx context.Context, command []string) error {
	if d.apps < 1 || d.apps > maxDevApps {
		return usageError{fmt.Errorf("--apps: between 1 and %d", maxDevApps)}
	}
	// From here on a signal is the command's, or ends this one in good order: the directory has to go.
	signals, which := make(chan os.Signal, 16), forwarded
	if len(command) == 0 {
		which = interrupts
	}
	for _, one := range notIgnored(which) {
		signal.Notify(signals, one)
	}
	defer signal.Stop(signals)
	data := d.data
	if data == "" {
		temporary, err := os.MkdirTemp("", "rouse-dev-")
		if err != nil {
			return fmt.Errorf("making a temporary directory: %w", err)
		}
		defer os.RemoveAll(temporary)
		data = temporary
	}
	database, remove, err := d.temporaryDatabase(ctx)
	if err != nil {
		return err
	}
	return errors.Join(d.runCore(ctx, server.Options{Data: data, Database: database, Listen: d.listen}, command, signals), remove())
}

// temporaryDatabase makes a database on the server that was named, if one was, and returns its address and what removes it.
func (d *dev) temporaryDatabase(ctx context.Context) (address string, remove func() error, err error) {
	if d.database == "" {
		return "", func() error { return nil }, nil
	}
	address, drop, err := postgres.MakeTemporary(ctx, d.database)
	if err != nil {
		return "", nil, err
	}
	return address, func() error { return drop(context.WithoutCancel(ctx)) }, nil
}

// runCore runs a core until the command has ended, or an interrupt when there is none.
func (d *dev) runCore(ctx context.Context, options server.Options, command []string, signals chan os.Signal) error {
	logger := slog.New(slog.NewTextHandler(d.env.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	options.PrivateWebhooks, options.Version, options.Logger = true, version(), logger
	running, err := server.Start(ctx, options)
	if err != nil {
		return err
	}
	variables, err := d.variables(ctx, running)
	if err == nil && len(command) > 0 {
		err = d.command(command, running, variables, signals)
	} else if err == nil {
		err = d.watch(ctx, running, variables, signals)
	}
	return errors.Join(err, running.Shutdown())
}

// A variable is one of the environment.
type variable struct{ name, value string }

// variables makes the apps and their keys, and says how to reach them.
func (d *dev) variables(ctx context.Context, running *server.Server) ([]variable, error) {
	list := []variable{{"WAKESHIFT_CORE", running.URL()}}
	for n := 1; n <= d.apps; n++ {
		id, name := "dev", "WAKESHIFT_KEY"
		if n > 1 {
			id, name = fmt.Sprintf("dev-%d", n), fmt.Sprintf("WAKESHIFT_KEY_%d", n)
		}
		if _, err := running.Core().CreateApp(ctx, id, ""); err != nil && !refusal.Is(err, refusal.Exists) {
			return nil, err
		}
		_, secret, err := running.Core().CreateKey(ctx, id, "rouse dev")
		if err != nil {
			return nil, err
		}
		list = append(list, variable{name, secret.Reveal()})
	}
	return list, nil
}

// command runs the command and ends as it ended.
func (d *dev) command(command []string, running *server.Server, variables []variable, signals <-chan os.Signal) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = d.env.Stdin, d.env.Stdout, d.env.Stderr
	cmd.Env = append(cmd.Env, d.env.Environ...)
	for _, v := range append(variables, variable{config.Variable("data"), running.Data()}) {
		cmd.Env = append(cmd.Env, v.name+"="+v.value)
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(d.env.Stderr, "rouse:", err)
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return exit(127) // as a shell has it
		}
		return exit(126)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case one := <-signals:
			if !typed(one, d.env.Stdin) {
				_ = cmd.Process.Signal(one) // it fails when the command has just ended
			}
		case err := <-running.Failed():
			fmt.Fprintln(d.env.Stderr, "rouse: the core has stopped:", err)
		case err := <-ended:
			var status *exec.ExitError
			if err != nil && !errors.As(err, &status) {
				return fmt.Errorf("running %s: %w", command[0], err)
			}
			if status := statusOf(cmd); status != statusOK {
				return exit(status)
			}
			return nil
		}
	}
}

// watch prints the variables and shows what the core does until interrupted.
func (d *dev) watch(ctx context.Context, running *server.Server, variables []variable, signals <-chan os.Signal) error {
	follower := running.Core().Feed().Follow()
	defer follower.Close()
	if err := d.print(variables); err != nil {
		return err
	}
	kept := "which goes with it"
	if d.data != "" {
		kept = "which stays"
	}
	d.remark("\nA core for development, in %s, %s. ^C ends it. From elsewhere:\n\n  rouse tail --data %[1]s\n", running.Data(), kept)
	show := d.shows(d.env.Stderr)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
			signal.Reset(interrupts...) // another one ends it at once
			return nil
		case err := <-running.Failed():
			return err
		case entry := <-follower.C():
			if err := show(entry); err != nil {
				return err
			}
		}
	}
}

// print writes the variables so that they can be pasted into a shell.
func (d *dev) print(variables []variable) error {
	object := map[string]string{}
	for _, v := range variables {
		object[v.name] = v.value
	}
	return d.answer(object, func(w io.Writer) {
		for _, v := range variables {
			if runtime.GOOS == "windows" {
				fmt.Fprintf(w, "$env:%s = %q\n", v.name, v.value)
				continue
			}
			fmt.Fprintf(w, "export %s=%s\n", v.name, v.value)
		}
	})
}
