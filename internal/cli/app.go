package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/internal/adminapi"
)

func (p *program) app() *cobra.Command {
	return group("app", "Apps: those who emit", p.appCreate(), p.appList(), p.appDelete())
}

func (p *program) appCreate() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "create ID",
		Short: "Make an app",
		Long:  "Makes an app. Its id is 2 to 40 lower-case letters, digits and dashes; agents see its name.",
		Example: "  rouse app create crawler\n" +
			"  rouse app create crawler --name \"Site crawler\"",
		Args: takes("ID"),
	}
	cmd.Flags().StringVar(&name, "name", "", "what agents are told the app is called (default: the id)")
	return p.administers(cmd, func(ctx context.Context, client *adminapi.Client, args []string) error {
		app, err := client.CreateApp(ctx, args[0], name)
		if err != nil {
			return err
		}
		p.remark("Made the app. A key for it: rouse key create --app %s", app.ID)
		return p.answer(app, func(w io.Writer) { fmt.Fprintln(w, app.ID) })
	})
}

func (p *program) appList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the apps",
		Example: "  rouse app list\n  rouse app list --json",
		Args:    takes(),
	}
	return p.administers(cmd, func(ctx context.Context, client *adminapi.Client, _ []string) error {
		apps, err := client.Apps(ctx)
		if err != nil {
			return err
		}
		if len(apps) == 0 {
			p.remark("No apps yet. Make one: rouse app create ID")
		}
		return p.answer(map[string]any{"apps": apps}, func(w io.Writer) {
			if len(apps) == 0 {
				return
			}
			var rows [][]string
			for _, app := range apps {
				rows = append(rows, []string{app.ID, app.Name, day(app.CreatedAt)})
			}
			table(w, []string{"ID", "NAME", "CREATED"}, rows)
		})
	})
}

func (p *program) appDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "delete ID",
		Short:   "Delete an app with everything that is its",
		Long:    "Deletes an app with its keys, manifest, conversations, subscriptions and occurrences. Nothing of it can be brought back.",
		Example: "  rouse app delete crawler",
		Args:    takes("ID"),
	}
	return p.administers(cmd, func(ctx context.Context, client *adminapi.Client, args []string) error {
		if err := client.DeleteApp(ctx, args[0]); err != nil {
			return err
		}
		p.remark("Deleted the app %s.", args[0])
		return p.answer(map[string]string{"deleted": args[0]}, func(io.Writer) {})
	})
}
