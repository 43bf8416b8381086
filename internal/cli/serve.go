package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/internal/config"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/server"
)

func (p *program) serve() *cobra.Command {
	var settings config.Settings
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the core",
		Long: "Runs the core until interrupted. Each flag is also a ROUSE_* variable (--public-url is ROUSE_PUBLIC_URL) and a key of the\n" +
			"configuration file (public-url = \"…\"); flags count before variables, those before the file.\n\n" +
			"ROUSE_SECRET, 32 bytes in hex, takes the place of master.key in the data directory, or of --master-key-file.\n\n" +
			"With --database any number of cores may share one PostgreSQL database and one secret. A password is not to be in the flag:\n" +
			"give the address in ROUSE_DATABASE or the configuration file, or the password in PGPASSWORD or ~/.pgpass.",
		Example: "  rouse serve\n" +
			"  rouse serve --listen 127.0.0.1:8787 --public-url https://wake.example.com   # behind a proxy\n" +
			"  rouse serve --database postgres://rouse@db.example.com/rouse --master-key-file /etc/rouse/master.key\n" +
			"  rouse serve --listen :443 --public-url https://wake.example.com --tls-cert cert.pem --tls-key key.pem",
		Args: takes(),
	}
	settings.Bind(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := p.resolve(cmd.Flags()); err != nil {
			return err
		}
		options, err := p.serverOptions(settings)
		if err != nil {
			return err
		}
		if p.getenv("GOGC") == "" {
			// Set now, and put back at the end: commands are also run within tests.
			defer debug.SetGCPercent(debug.SetGCPercent(settings.GCPercent))
		}
		return p.runServer(cmd.Context(), options, settings.Drain)
	}
	return cmd
}

// serverOptions are a server's options by the settings of a command.
func (p *program) serverOptions(settings config.Settings) (server.Options, error) {
	if err := settings.Check(); err != nil {
		return server.Options{}, err
	}
	data, err := p.dataOr(settings.Data)
	if err != nil {
		return server.Options{}, err
	}
	proxies, err := settings.Proxies()
	if err != nil {
		return server.Options{}, err
	}
	trusted, err := settings.TrustedWebhooks()
	if err != nil {
		return server.Options{}, err
	}
	logger, err := logTo(p.env.Stderr, settings)
	if err != nil {
		return server.Options{}, err
	}
	options := server.Options{Data: data, Database: settings.Database, Listen: settings.Listen, PublicURL: settings.PublicURL, TLSCert: settings.TLSCert,
		TLSKey: settings.TLSKey, TrustedProxies: proxies, StreamsPerAddress: settings.StreamsPerAddress,
		FailuresPerAddress: settings.FailuresPerAddress, Retention: settings.Retention, RetentionSize: int64(settings.RetentionSize), Limits: settings.Limits,
		PrivateWebhooks: settings.PrivateWebhooks, TrustedWebhooks: trusted, Version: version(), Logger: logger}
	if secret := p.getenv("ROUSE_SECRET"); secret != "" {
		if options.Master, err = credential.MasterFromEnv(secret); err != nil {
			return server.Options{}, fmt.Errorf("ROUSE_SECRET: %w", err)
		}
	} else if settings.MasterKeyFile != "" {
		if options.Master, err = credential.ReadMaster(settings.MasterKeyFile); err != nil {
			return server.Options{}, fmt.Errorf("master-key-file: %w", err)
		}
	}
	return options, nil
}

func logTo(w io.Writer, settings config.Settings) (*slog.Logger, error) {
	level, err := settings.Level()
	if err != nil {
		return nil, err
	}
	options := &slog.HandlerOptions{Level: level}
	if settings.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return slog.New(slog.NewTextHandler(w, options)), nil
}

// runServer serves until interrupted, and for so long then while saying that it is about to stop.
func (p *program) runServer(ctx context.Context, options server.Options, drain time.Duration) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	running, err := server.Start(ctx, options)
	if err != nil {
		return err
	}
	options.Logger.Info("serving", "url", running.URL(), "address", running.Address().String(), "data", running.Data(), "version", version())
	if err := p.welcome(ctx, running); err != nil {
		options.Logger.Error("the apps cannot be read", "error", err)
	}
	select {
	case <-ctx.Done():
		options.Logger.Info("stopping; another interrupt ends it at once")
		running.Leave()
		select {
		case <-time.After(drain):
		case err = <-running.Failed():
		}
	case err = <-running.Failed():
	}
	return errors.Join(err, running.Shutdown())
}

// welcome tells whoever starts a core without apps how to make one.
func (p *program) welcome(ctx context.Context, running *server.Server) error {
	apps, err := running.Core().Apps(ctx)
	if err != nil || len(apps) > 0 {
		return err
	}
	where := ""
	if custom, err := config.DefaultData(p.lookup); err != nil || custom != running.Data() {
		where = fmt.Sprintf(" --data %q", running.Data())
	}
	p.remark(`
This core has no app yet. These make one, and a key for it:

  rouse app create crawler%[1]s
  export WAKESHIFT_KEY=$(rouse key create --app crawler%[1]s)
  export WAKESHIFT_CORE=%[2]s
`, where, running.URL())
	return nil
}
