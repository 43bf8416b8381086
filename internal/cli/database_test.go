//go:build !windows

package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
)

func TestDevOnPostgreSQL(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	script := `$ROUSE app list | grep -o dev; test -e "$ROUSE_DATA/rouse.db" && echo a file; exit 3`
	cmd, temporary := program(t, "dev", "--database", address, "--", "sh", "-c", script)
	out, err := cmd.Output()
	if status := statusOf(err); status != 3 || !strings.HasPrefix(string(out), "dev") || strings.Contains(string(out), "a file") {
		t.Errorf("status %d, output %q", status, out)
	}
	empty(t, temporary)
	conn := pgtest.Connect(t, address)
	defer conn.Close(context.Background())
	var tables, databases int
	err = conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_tables WHERE schemaname = 'public'),
		(SELECT count(*) FROM pg_database WHERE datname LIKE 'rouse_dev_%')`).Scan(&tables, &databases)
	if err != nil || tables != 0 || databases != 0 {
		t.Errorf("left behind: %d tables, %d databases, %v", tables, databases, err)
	}
}

func TestDatabasePasswordOnTheCommandLine(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"serve", "dev"} {
		cmd, temporary := program(t, command, "--database", "postgres://rouse:hunter2@127.0.0.1:1/rouse")
		out, err := cmd.CombinedOutput()
		if statusOf(err) == 0 || !strings.Contains(string(out), "ROUSE_DATABASE") || strings.Contains(string(out), "hunter2") {
			t.Errorf("%s: %v, output %q", command, err, out)
		}
		empty(t, temporary)
	}
}
