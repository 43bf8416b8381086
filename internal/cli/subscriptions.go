package cli

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/internal/adminapi"
)

func (p *program) subscriptions() *cobra.Command {
	var app string
	cmd := &cobra.Command{
		Use:   "subscriptions",
		Short: "List who is subscribed to what, and whether they can be reached now",
		Long: "Lists the live subscriptions. CONNECTED says how the conversation is connected at this moment: stream for a Monitor, hooks\n" +
			"for a connector. A dash means that nothing of it is connected: what happens waits for it.",
		Example: "  rouse subscriptions\n  rouse subscriptions --app crawler --json",
		Args:    takes(),
	}
	cmd.Flags().StringVar(&app, "app", "", "`id` of the app (default: all)")
	return p.administers(cmd, func(ctx context.Context, client *adminapi.Client, _ []string) error {
		apps := []string{app}
		if app == "" {
			all, err := client.Apps(ctx)
			if err != nil {
				return err
			}
			apps = nil
			for _, one := range all {
				apps = append(apps, one.ID)
			}
		}
		subs := []adminapi.Subscription{}
		for _, one := range apps {
			of, err := client.Subscriptions(ctx, one)
			if err != nil {
				return err
			}
			subs = append(subs, of...)
		}
		if len(subs) == 0 {
			p.remark("Nobody is subscribed. An agent subscribes by calling one of the app's tools.")
		}
		return p.answer(map[string]any{"subscriptions": subs}, func(w io.Writer) { listSubscriptions(w, subs) })
	})
}

func listSubscriptions(w io.Writer, subs []adminapi.Subscription) {
	if len(subs) == 0 {
		return
	}
	var rows [][]string
	for _, s := range subs {
		who, connected := cmp.Or(s.Harness, s.Client, "?")+" "+shortID(s.Conversation), cmp.Or(s.Via, "-")
		if s.WebhookHost != "" {
			who = s.WebhookHost
			if s.LastError != "" {
				connected += " (last: " + s.LastError + ")"
			}
		}
		what := cmp.Or(s.Event, s.Topic)
		if len(s.Arguments) > 0 && string(s.Arguments) != "{}" {
			what += " " + string(s.Arguments)
		}
		if s.Once {
			what += " (once)"
		}
		rows = append(rows, []string{s.App, what, who, cmp.Or(s.User, "-"), connected, day(s.ExpiresAt), shortID(s.ID)})
	}
	table(w, []string{"APP", "EVENT OR TOPIC", "WHO", "USER", "CONNECTED", "EXPIRES", "ID"}, rows)
}
