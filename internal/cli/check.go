package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/internal/adminapi"
	"github.com/rouse-dev/rouse/internal/config"
	"github.com/rouse-dev/rouse/internal/server"
)

func (p *program) check() *cobra.Command {
	var data, database string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Look through the whole database for damage",
		Long: "Reads the whole database and lists what is wrong with it: damaged pages, rows that refer to nothing, an index of topics that\n" +
			"does not fit the log, places beyond its end. It asks the core that runs on the data directory, and opens the database\n" +
			"itself when none does. The exit status is 0 when all is well, 1 when it is not.",
		Example: "  rouse check\n  rouse check --json --data /var/lib/rouse",
		Args:    takes(),
	}
	config.BindData(cmd.Flags(), &data)
	config.BindDatabase(cmd.Flags(), &database)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		data, err := p.directory(cmd, data)
		if err != nil {
			return err
		}
		problems, err := p.problems(cmd.Context(), data, database)
		if err != nil {
			return err
		}
		if err := p.answer(map[string]any{"problems": problems}, func(w io.Writer) { listProblems(w, problems) }); err != nil {
			return err
		}
		if len(problems) > 0 {
			return exit(statusFailed)
		}
		return nil
	}
	return cmd
}

// problems asks the core that runs on a data directory, or looks for itself when none does.
func (p *program) problems(ctx context.Context, data, database string) ([]adminapi.Problem, error) {
	client := adminapi.NewClient(data)
	defer client.Close()
	problems, err := client.Check(ctx)
	if errors.Is(err, adminapi.ErrNotRunning) {
		problems, err = server.Check(ctx, data, database)
	}
	if problems == nil {
		problems = []adminapi.Problem{}
	}
	return problems, err
}

func listProblems(w io.Writer, problems []adminapi.Problem) {
	if len(problems) == 0 {
		fmt.Fprintln(w, "all is well")
		return
	}
	var rows [][]string
	for _, problem := range problems {
		rows = append(rows, []string{problem.Where, problem.What})
	}
	table(w, []string{"WHERE", "WHAT"}, rows)
}
