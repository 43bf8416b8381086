package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/internal/adminapi"
	"github.com/rouse-dev/rouse/internal/config"
	"github.com/rouse-dev/rouse/internal/server"
)

func (p *program) backup() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a copy of the database of a running core",
		Long: "Writes a whole copy of the database to a file, for its owner alone, while the core goes on. The core makes the copy in its\n" +
			"data directory first, which needs as much room again. A core on PostgreSQL is backed up with pg_dump.\n\n" +
			"The core's secret is not in it: keep master.key of the data directory, or ROUSE_SECRET, as well.",
		Example: "  rouse backup /backup/rouse-$(date +%F).db",
		Args:    takes("FILE"),
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace the file if it is there")
	return p.administers(cmd, func(ctx context.Context, client *adminapi.Client, args []string) error {
		ctx, stop := interruptible(ctx)
		defer stop()
		size, err := p.writeCopy(ctx, client, args[0], force)
		if err != nil {
			return err
		}
		p.remark("Keep master.key of the data directory with it: without that secret, every credential handed out is void.")
		return p.answer(map[string]any{"file": args[0], "bytes": size}, func(w io.Writer) {
			fmt.Fprintf(w, "%s: %d bytes\n", args[0], size)
		})
	})
}

// writeCopy writes the copy beside the file first, which so is whole from the moment it is there.
func (p *program) writeCopy(ctx context.Context, client *adminapi.Client, path string, force bool) (size int64, err error) {
	if _, err := os.Lstat(path); err == nil && !force {
		return 0, fmt.Errorf("%s is there already: name another file, or replace it with --force", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".rouse-backup-*") // with mode 0600
	if err != nil {
		return 0, fmt.Errorf("writing the backup: %w", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := client.Backup(ctx, file, p.showProgress()); err != nil {
		return 0, err
	}
	if size, err = file.Seek(0, io.SeekCurrent); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return 0, fmt.Errorf("writing the backup: %w", err)
	}
	if err := place(file.Name(), path, force); err != nil {
		return 0, fmt.Errorf("writing the backup: %w", err)
	}
	return size, nil
}

// place gives a written file its name, and another's place only when it may.
func place(from, to string, force bool) error {
	give := os.Link // which fails where there is something
	if force {
		give = os.Rename
	}
	if err := give(from, to); err != nil {
		return err
	}
	directory, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	_ = directory.Sync() // not every system can, and those that cannot need not
	return directory.Close()
}

// showProgress tells people at a terminal how far a copy is, twice a second.
func (p *program) showProgress() func(done, all int64) {
	if p.json || !bool(p.styleOf(p.env.Stderr)) {
		return nil
	}
	var shown time.Time
	return func(done, all int64) {
		if done < all && time.Since(shown) < time.Second/2 || all <= 0 {
			return
		}
		shown = time.Now()
		fmt.Fprintf(p.env.Stderr, "\r%3d %% of %d bytes", done*100/all, all)
		if done == all {
			fmt.Fprintln(p.env.Stderr)
		}
	}
}

func (p *program) restore() *cobra.Command {
	var data, database string
	var force bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a backup the database of a data directory, while no core runs there",
		Long: "Checks a file that `rouse backup` wrote and makes it the database of the data directory. What happened after the backup is\n" +
			"gone. Ids and cursors from before are no longer known, so that none is taken for what is given the same place later.\n\n" +
			"Put master.key, or ROUSE_SECRET, back as well.",
		Example: "  rouse restore /backup/rouse-2026-11-30.db --data /var/lib/rouse",
		Args:    takes("FILE"),
	}
	config.BindData(cmd.Flags(), &data)
	config.BindDatabase(cmd.Flags(), &database)
	cmd.Flags().BoolVar(&force, "force", false, "replace the database that is there")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		data, err := p.directory(cmd, data)
		if err != nil {
			return err
		}
		if database != "" {
			return errors.New("database: the settings name a PostgreSQL database: restore that with pg_restore, from what pg_dump made of it")
		}
		err = server.Restore(cmd.Context(), data, args[0], force)
		switch {
		case errors.Is(err, server.ErrDatabaseExists):
			return fmt.Errorf("%w: name another with --data, or replace it with --force", err)
		case err != nil:
			return fmt.Errorf("restoring %s: %w", args[0], err)
		}
		if _, err := os.Stat(filepath.Join(data, "master.key")); errors.Is(err, fs.ErrNotExist) && p.getenv("ROUSE_SECRET") == "" {
			p.remark("There is no master.key in %s: put back the one that belongs to the backup before you start the core, or every credential is void.", data)
		}
		return p.answer(map[string]any{"data": data}, func(w io.Writer) { fmt.Fprintf(w, "restored to %s\n", data) })
	}
	return cmd
}
