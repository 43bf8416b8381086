package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/internal/adminapi"
)

func (p *program) replay() *cobra.Command {
	var app string
	var what adminapi.Replay
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Send events to a webhook again",
		Long: "Queues events for a webhook again: one, a stretch of them, or all since a time, whether they were delivered or given up, and\n" +
			"as often as you ask. Only what the webhook is subscribed to is sent. Each keeps its id: a receiver that remembers ids passes\n" +
			"by what it has.",
		Example: "  rouse deliveries replay --delivery dlv_1042\n" +
			"  rouse deliveries replay --webhook sub_k3j2h4abcdefgh27 --event evt_dydt1\n" +
			"  rouse deliveries replay --webhook sub_k3j2h4abcdefgh27 --from evt_dydt1 --to evt_dydt9\n" +
			"  rouse deliveries replay --webhook sub_k3j2h4abcdefgh27 --since 2h",
		Args: takes(),
	}
	bindApp(cmd, &app)
	flags := cmd.Flags()
	flags.StringVar(&what.Webhook, "webhook", "", "`id` of the webhook, as `rouse deliveries` shows it; may be left out with --delivery")
	flags.StringVar(&what.Delivery, "delivery", "", "what was sent in the delivery with that `id`, as `rouse deliveries` shows it")
	flags.StringVar(&what.Event, "event", "", "the event with that `id`")
	flags.StringVar(&what.From, "from", "", "all from the event with that `id` on")
	flags.StringVar(&what.To, "to", "", "with --from: no further than the event with that `id`")
	flags.DurationVar(&since, "since", 0, "what happened within that `time` up to now, as in 90m or 48h")
	return p.administers(cmd, func(ctx context.Context, client *adminapi.Client, _ []string) error {
		if err := checkReplay(what, since, flags.Changed("since")); err != nil {
			return usageError{err}
		}
		if since > 0 {
			what.Since = time.Now().Add(-since)
		}
		app, err := onlyApp(ctx, client, app)
		if err != nil {
			return err
		}
		done, err := client.Replay(ctx, app, what)
		if err != nil {
			return err
		}
		for _, remark := range replayRemarks(what, done) {
			p.remark("%s", remark)
		}
		return p.answer(done, func(w io.Writer) { fmt.Fprintf(w, "queued %d\n", done.Queued) })
	})
}

// checkReplay says what is wrong with the flags of a replay.
func checkReplay(what adminapi.Replay, since time.Duration, sinceGiven bool) error {
	chosen := 0
	for _, is := range []bool{what.Delivery != "", what.Event != "", what.From != "", sinceGiven} {
		if is {
			chosen++
		}
	}
	switch {
	case chosen != 1:
		return errors.New("say what to send again by one of --delivery, --event, --from and --since: see `rouse deliveries replay --help`")
	case what.To != "" && what.From == "":
		return errors.New("--to needs --from, the event to begin with")
	case what.Webhook == "" && what.Delivery == "":
		return errors.New("--webhook is missing: `rouse deliveries` shows the ids of webhooks")
	case sinceGiven && since <= 0:
		return errors.New("--since must be a time before now, as in 90m or 48h")
	}
	return nil
}

// replayRemarks is what people should know beside how much was queued.
func replayRemarks(what adminapi.Replay, done adminapi.Replayed) (remarks []string) {
	if done.Queued == 0 && done.Gone == 0 && !done.More {
		remarks = append(remarks, "None of that is for this webhook, by its event, arguments, filter and user, or nothing happened.")
	}
	if done.Gone > 0 {
		remarks = append(remarks, fmt.Sprintf("The content of %d more is gone: it was deleted on delivery, or is older than the retention.", done.Gone))
	}
	if done.Truncated {
		remarks = append(remarks, "It begins before what is kept: what is older cannot be sent again.")
	}
	if done.Suspended {
		remarks = append(remarks, "The webhook is suspended: what is queued waits until its client subscribes again.")
	}
	if done.More {
		next := fmt.Sprintf("There is more: go on with `rouse deliveries replay --webhook %s --from %s", what.Webhook, done.Next)
		if what.To != "" {
			next += " --to " + what.To
		}
		remarks = append(remarks, next+"`.")
	}
	return remarks
}
