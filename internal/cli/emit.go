package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/internal/adminapi"
	"github.com/rouse-dev/rouse/internal/config"
	"github.com/rouse-dev/rouse/internal/strictjson"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (p *program) emit() *cobra.Command {
	var app, data, args, payload string
	var e adminapi.Emit
	cmd := &cobra.Command{
		Use:   "emit EVENT",
		Short: "Say that an event has happened",
		Long: "Emits an event, as its app would, and says how many conversations and webhooks it is for.\n\n" +
			"With WAKESHIFT_KEY set it speaks to the core at WAKESHIFT_CORE with that key, from wherever it runs. Otherwise, and\n" +
			"with --app or --data, it uses the administration socket of the core on this machine.\n\n" +
			"--args and --payload take JSON, @FILE, or - for standard input.",
		Example: "  rouse emit crawl.finished --args '{\"job\":\"j1\"}' --payload '{\"pages\":12}'\n" +
			"  rouse emit crawl.finished --args '{\"job\":\"j1\"}' --payload @result.json --id crawl-j1\n" +
			"  make-result | rouse emit report.ready --payload - --to ada",
		Args: takes("EVENT"),
	}
	flags := cmd.Flags()
	bindApp(cmd, &app)
	config.BindData(flags, &data)
	flags.StringVar(&args, "args", "{}", "the event's arguments, `JSON`")
	flags.StringVar(&payload, "payload", "{}", "what happened, `JSON`")
	flags.StringVar(&e.Text, "text", "", "what agents read first (default: the event's name and the start of the payload)")
	flags.StringVar(&e.ID, "id", "", "your own id of it: emitting the same event with the same id again counts once")
	flags.StringVar(&e.To, "to", "", "the one `user` it is for, if the event is personal")
	cmd.RunE = func(cmd *cobra.Command, names []string) (err error) {
		e.Name = names[0]
		if args == "-" && payload == "-" {
			return usageError{errors.New("--args and --payload cannot both be standard input")}
		}
		if e.Arguments, err = p.readJSON("--args", args); err != nil {
			return err
		}
		if e.Payload, err = p.readJSON("--payload", payload); err != nil {
			return err
		}
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		local := flags.Changed("app") || flags.Changed("data")
		if key := p.getenv("WAKESHIFT_KEY"); key != "" && !local {
			done, err := emitRemotely(ctx, p.getenv("WAKESHIFT_CORE"), key, e)
			if err != nil {
				return err
			}
			return p.emitted(done)
		}
		return p.emitLocally(ctx, cmd, app, data, e)
	}
	return cmd
}

func (p *program) emitLocally(ctx context.Context, cmd *cobra.Command, app, data string, e adminapi.Emit) error {
	client, err := p.administration(cmd, data)
	if err != nil {
		return err
	}
	defer client.Close()
	if app, err = onlyApp(ctx, client, app); err != nil {
		if errors.Is(err, adminapi.ErrNotRunning) {
			return fmt.Errorf("%w; for a core elsewhere set WAKESHIFT_CORE and WAKESHIFT_KEY", err)
		}
		return err
	}
	done, err := client.Emit(ctx, app, e)
	if err != nil {
		return err
	}
	return p.emitted(done)
}

func (p *program) emitted(done adminapi.Emitted) error {
	if done.Matched == 0 && !done.Duplicate {
		p.remark("Nobody is subscribed to that: `rouse subscriptions` shows who is subscribed to what.")
	}
	return p.answer(done, func(w io.Writer) {
		if done.Duplicate {
			fmt.Fprintf(w, "matched %d (an earlier emit had this id: it counts once)\n", done.Matched)
			return
		}
		fmt.Fprintf(w, "matched %d\n", done.Matched)
	})
}

// readJSON reads an object from a flag's value: the JSON itself, @FILE, or - for standard input.
func (p *program) readJSON(flag, value string) (json.RawMessage, error) {
	content := []byte(value)
	var err error
	if value == "-" {
		content, err = io.ReadAll(io.LimitReader(p.env.Stdin, maxInput+1))
	} else if path, ok := strings.CutPrefix(value, "@"); ok {
		content, err = readUpTo(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	object, err := strictjson.Object(content, strictjson.Limits{MaxBytes: maxInput, MaxDepth: wake.MaxDepth})
	if err != nil {
		return nil, usageError{fmt.Errorf("%s: %w (quote JSON for the shell: '{\"job\":\"j1\"}')", flag, err)}
	}
	return json.RawMessage(object), nil
}

// maxInput bounds what is read; the core's limit is for JSON in compact form.
const maxInput = 1 << 20

func readUpTo(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxInput+1))
}
