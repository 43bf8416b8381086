package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/internal/adminapi"
	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (p *program) tail() *cobra.Command {
	var app string
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Watch what the core does: why was my agent not woken?",
		Long: "Shows subscriptions, emits and whom they matched, connections, deliveries and refusals as they happen, until interrupted.\n" +
			"It names things by their ids and shows no payload.",
		Example: "  rouse tail\n  rouse tail --app crawler --json | jq .kind",
		Args:    takes(),
	}
	cmd.Flags().StringVar(&app, "app", "", "`id` of the app (default: all)")
	return p.administers(cmd, func(ctx context.Context, client *adminapi.Client, _ []string) error {
		ctx, stop := interruptible(ctx)
		defer stop()
		show := p.shows(p.env.Stdout)
		started := func() { p.remark("Watching; ^C ends it.") }
		return client.Tail(ctx, started, func(entry trace.Entry) error {
			if app != "" && entry.App != app && entry.App != "" {
				return nil
			}
			return show(entry)
		})
	})
}

// shows returns what writes trace entries: as JSON, or as lines for people.
func (p *program) shows(w io.Writer) func(trace.Entry) error {
	if p.json {
		encoder := json.NewEncoder(w)
		return func(entry trace.Entry) error { return encoder.Encode(entry) }
	}
	colours := p.styleOf(w)
	return func(entry trace.Entry) error {
		_, err := fmt.Fprintln(w, tailLine(entry, colours))
		return err
	}
}

// kindColours marks what to look at first.
var kindColours = map[trace.Kind]string{
	trace.Emitted: cyan, trace.Duplicate: cyan, trace.Delivered: green, trace.Retrying: yellow, trace.Missed: yellow,
	trace.Abandoned: red, trace.Refused: red, trace.Connected: faint, trace.Disconnected: faint,
}

// tailLine is an entry as a person reads it.
func tailLine(e trace.Entry, colours style) string {
	kind := fmt.Sprintf("%-12s", e.Kind)
	parts := []string{colours.paint(faint, e.At.Local().Format("15:04:05.000")), colours.paint(kindColours[e.Kind], kind)}
	add := func(format, value string) {
		if value != "" {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	add("%s", e.App)
	add("%s", subjectOf(e))
	add("%s", e.Occurrence)
	add("conversation %s", shortID(e.Conversation))
	add("%s", e.Harness)
	add("%s", pathOf(e))
	add("%s", shortID(e.Subscription))
	add("%s", countOf(e))
	add("%s", e.Code)
	add("%s", e.Detail)
	return strings.TrimRight(strings.Join(parts, "  "), " ")
}

// subjectOf is what happened and where it was routed to, which is where emits and subscriptions miss each other.
func subjectOf(e trace.Entry) string {
	routed, ordinary := strings.CutPrefix(e.Topic, wake.EventTopicPrefix)
	switch {
	case e.Event == "":
		return e.Topic
	case e.Topic == "":
		return e.Event
	case ordinary && strings.HasPrefix(routed, e.Event):
		return routed
	}
	return e.Event + " on " + e.Topic
}

// pathOf says how something travels, or how a subscription's conversation can be woken.
func pathOf(e trace.Entry) string {
	switch {
	case e.Path == "":
		return ""
	case e.Path == string(harness.PathHeld):
		return "held for its next call"
	case e.Kind == trace.Subscribed || e.Kind == trace.Renewed:
		return "woken by " + e.Path
	}
	return "by " + e.Path
}

// countOf says what an entry's count is of.
func countOf(e trace.Entry) string {
	switch e.Kind {
	case trace.Emitted, trace.Duplicate:
		if e.Count == 0 {
			return "matched 0: nobody is subscribed to it"
		}
		return fmt.Sprintf("matched %d", e.Count)
	case trace.Missed:
		return fmt.Sprintf("%d entries were too fast to show", e.Count)
	case trace.Retrying, trace.Abandoned:
		return fmt.Sprintf("attempt %d", e.Count)
	}
	return ""
}
