package server_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rouse-dev/rouse/internal/adminapi"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/server"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
)

// A core on PostgreSQL is checked as any, and leaves backups to the server's own tools.
func TestUpkeepOnPostgreSQL(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	b := setup(t, func(o *server.Options) { o.Database = address })
	client := adminapi.NewClient(b.Data())
	defer client.Close()
	var copied bytes.Buffer
	err := client.Backup(t.Context(), &copied, nil)
	if !refusal.Is(err, refusal.Unsupported) || !strings.Contains(err.Error(), "pg_dump") || copied.Len() > 0 {
		t.Errorf("backup: %v, %d bytes", err, copied.Len())
	}
	if problems, err := client.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("check by the core: %v, %v", problems, err)
	}
	if problems, err := server.Check(t.Context(), b.Data(), address); err != nil || len(problems) > 0 {
		t.Errorf("check beside it: %v, %v", problems, err)
	}
	pgtest.Exec(t, address, "UPDATE log SET head = 0, horizon = 5")
	if problems, err := server.Check(t.Context(), b.Data(), address); err != nil || len(problems) == 0 {
		t.Errorf("with the log's state broken: %v, %v", problems, err)
	}
}

func TestCheckBesideACoreIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	if _, err := server.Check(t.Context(), b.Data(), ""); !errors.Is(err, store.ErrLocked) {
		t.Errorf("error %v", err)
	}
}
