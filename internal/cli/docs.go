package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/internal/refusal"
)

// docs writes the parts of docs/ that are generated; `go generate ./...` calls it.
func (p *program) docs() *cobra.Command {
	var out string
	errorsPage := &cobra.Command{
		Use:     "errors --out FILE",
		Short:   "Write the page of error codes",
		Example: "  rouse docs errors --out docs/errors.md",
		Args:    takes(),
		RunE: func(*cobra.Command, []string) error {
			if out == "" {
				return usageError{fmt.Errorf("--out is missing: name the file to write")}
			}
			if err := os.WriteFile(out, []byte(errorsMarkdown()), 0o644); err != nil {
				return fmt.Errorf("writing the page: %w", err)
			}
			return nil
		},
	}
	errorsPage.Flags().StringVar(&out, "out", "", "`file` to write")
	cmd := group("docs", "Write the generated pages of the documentation", errorsPage)
	cmd.Hidden = true
	return cmd
}

func errorsMarkdown() string {
	var b strings.Builder
	b.WriteString("# Errors\n\n" +
		"<!-- Generated from internal/refusal by `go generate ./...`: change the catalogue, not this page. -->\n\n" +
		"An error is `{\"error\":{\"code\",\"message\",\"reason\"?}}` with the status below. `message` says what exactly was wrong; programs go by\n" +
		"`code`. Nothing of a refused request was done.\n\n" +
		"| code | status | meaning | what to do |\n|---|---|---|---|\n")
	for _, e := range refusal.All() {
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s |\n", e.Code, e.Status, cell(e.Meaning), cell(e.Advice))
	}
	return b.String()
}

// cell keeps a text within its cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(text)
}
