package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/internal/adminapi"
)

func (p *program) key() *cobra.Command {
	return group("key", "App keys: what an app signs with", p.keyCreate(), p.keyList(), p.keyRevoke())
}

func bindApp(cmd *cobra.Command, app *string) {
	cmd.Flags().StringVar(app, "app", "", "`id` of the app; may be left out when there is exactly one")
}

func (p *program) keyCreate() *cobra.Command {
	var app, name string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a key and show it, once",
		Long:  "Makes a key for an app and writes it to standard output. The core keeps its public half only: it cannot be shown again.",
		Example: "  rouse key create --app crawler --name laptop\n" +
			"  export WAKESHIFT_KEY=$(rouse key create --app crawler)",
		Args: takes(),
	}
	bindApp(cmd, &app)
	cmd.Flags().StringVar(&name, "name", "", "what the key is for, to tell keys apart (default: default)")
	return p.administers(cmd, func(ctx context.Context, client *adminapi.Client, _ []string) error {
		app, err := onlyApp(ctx, client, app)
		if err != nil {
			return err
		}
		key, err := client.CreateKey(ctx, app, name)
		if err != nil {
			return err
		}
		p.remark("Key %s for the app %s. It is shown this once: keep it where the app finds it as WAKESHIFT_KEY.", key.ID, app)
		return p.answer(key, func(w io.Writer) { fmt.Fprintln(w, key.Secret) })
	})
}

func (p *program) keyList() *cobra.Command {
	var app string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List an app's keys, revoked ones too",
		Example: "  rouse key list --app crawler",
		Args:    takes(),
	}
	bindApp(cmd, &app)
	return p.administers(cmd, func(ctx context.Context, client *adminapi.Client, _ []string) error {
		app, err := onlyApp(ctx, client, app)
		if err != nil {
			return err
		}
		keys, err := client.Keys(ctx, app)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			p.remark("No keys yet. Make one: rouse key create --app %s", app)
		}
		return p.answer(map[string]any{"keys": keys}, func(w io.Writer) {
			if len(keys) == 0 {
				return
			}
			var rows [][]string
			for _, key := range keys {
				rows = append(rows, []string{key.ID, key.Name, day(key.CreatedAt), day(key.RevokedAt)})
			}
			table(w, []string{"ID", "NAME", "CREATED", "REVOKED"}, rows)
		})
	})
}

func (p *program) keyRevoke() *cobra.Command {
	var app string
	cmd := &cobra.Command{
		Use:     "revoke KEY",
		Short:   "Revoke a key",
		Long:    "Revokes a key by its id, which `rouse key list` shows. What is signed with it is refused from now on.",
		Example: "  rouse key revoke --app crawler 5KQwrPbwdL6PhXujxW37FS",
		Args:    takes("KEY"),
	}
	bindApp(cmd, &app)
	return p.administers(cmd, func(ctx context.Context, client *adminapi.Client, args []string) error {
		app, err := onlyApp(ctx, client, app)
		if err != nil {
			return err
		}
		if err := client.RevokeKey(ctx, app, args[0]); err != nil {
			return err
		}
		p.remark("Revoked the key %s of the app %s.", args[0], app)
		return p.answer(map[string]string{"revoked": args[0]}, func(io.Writer) {})
	})
}
