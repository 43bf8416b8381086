package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/internal/adminapi"
)

func (p *program) deliveries() *cobra.Command {
	var app, subscription string
	var q adminapi.DeliveryList
	cmd := &cobra.Command{
		Use:   "deliveries",
		Short: "List what was sent to webhooks, and how it went",
		Long: "Lists the attempts at deliveries to webhooks, the newest first. They are kept for the retention, of each webhook the last 2500.\n" +
			"RESULT is the status the endpoint answered with, or why there was no answer. Of an endpoint only the host is shown.",
		Example: "  rouse deliveries --failed\n" +
			"  rouse deliveries --webhook sub_k3j2h4abcdefgh27 --limit 10\n" +
			"  rouse deliveries --event evt_dydt1 --json",
		Args: takes(),
	}
	bindApp(cmd, &app)
	flags := cmd.Flags()
	flags.StringVar(&q.Webhook, "webhook", "", "only to the webhook with that `id`, as `rouse subscriptions --json` shows it")
	flags.StringVar(&subscription, "subscription", "", "only to the webhooks of the subscription with that `id`: its own, or those that came by its voucher")
	flags.StringVar(&q.Event, "event", "", "only of the event with that `id`; of an id that the app chose, name the webhook too")
	flags.BoolVar(&q.Failed, "failed", false, "only attempts that delivered nothing")
	flags.StringVar(&q.Before, "before", "", "only those listed after the delivery with that `id`")
	flags.IntVar(&q.Limit, "limit", 50, fmt.Sprintf("at most so many `attempts`, up to %d", adminapi.MaxDeliveries))
	p.administers(cmd, func(ctx context.Context, client *adminapi.Client, _ []string) error {
		switch {
		case q.Limit < 1 || q.Limit > adminapi.MaxDeliveries:
			return usageError{fmt.Errorf("--limit must be from 1 to %d: what comes after the last one is listed with --before", adminapi.MaxDeliveries)}
		case q.Webhook != "" && subscription != "":
			return usageError{errors.New("--webhook and --subscription cannot both be given: name one")}
		}
		q.Webhook = cmp.Or(q.Webhook, subscription)
		app, err := onlyApp(ctx, client, app)
		if err != nil {
			return err
		}
		list, err := client.Deliveries(ctx, app, q)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			p.remark("Nothing of that was sent: `rouse subscriptions` shows who is subscribed to what.")
		} else if len(list) == q.Limit {
			p.remark("There may be more: --before %s lists what came before.", list[len(list)-1].ID)
		}
		return p.answer(map[string]any{"deliveries": list}, func(w io.Writer) { listDeliveries(w, list) })
	})
	cmd.AddCommand(p.replay())
	return cmd
}

func listDeliveries(w io.Writer, list []adminapi.Delivery) {
	if len(list) == 0 {
		return
	}
	var rows [][]string
	for _, d := range list {
		what := cmp.Or(d.EventID, "("+d.Notice+" notice)")
		result := d.Category
		if d.Status != 0 {
			result = strconv.Itoa(d.Status)
		}
		outcome := d.Outcome
		if !d.NextAt.IsZero() {
			outcome += " at " + second(d.NextAt)
		}
		took := (time.Duration(d.TookMS) * time.Millisecond).String()
		rows = append(rows, []string{second(d.At), d.ID, d.Event, what, d.Host, strconv.Itoa(d.Try), cmp.Or(result, "-"), took, outcome, d.Webhook})
	}
	table(w, []string{"TIME", "ID", "EVENT", "EVENT ID", "HOST", "TRY", "RESULT", "TOOK", "OUTCOME", "WEBHOOK"}, rows)
}

// second is a time as lists show it that need more than the minute.
func second(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
