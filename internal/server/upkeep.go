package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rouse-dev/rouse/internal/config"
	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/postgres"
	"github.com/rouse-dev/rouse/internal/store"
	pgstore "github.com/rouse-dev/rouse/internal/store/postgres"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
)

// ErrDatabaseExists means that a data directory has a database already.
var ErrDatabaseExists = errors.New("the data directory has a database already")

// Restore makes a copy of a database the one of a data directory, which is made when it is not there. The copy is checked whole
// first. One that is there already is [ErrDatabaseExists] unless it is to be replaced, and one in use an error that wraps
// [store.ErrLocked].
func Restore(ctx context.Context, data, copy string, replace bool) error {
	data, err := config.PrepareData(data)
	if err != nil {
		return err
	}
	err = sqlite.Install(ctx, copy, filepath.Join(data, databaseName), replace)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w: %s", ErrDatabaseExists, data)
	case errors.Is(err, store.ErrLocked):
		return fmt.Errorf("a core runs on %s: stop it first (%w)", data, err)
	}
	return err
}

// Check looks through a database for damage: that at a PostgreSQL address, or with none that of a data directory where no core
// runs. Without problems all is well.
func Check(ctx context.Context, data, address string) (problems []core.Problem, err error) {
	s, err := openToCheck(ctx, data, address)
	if errors.Is(err, store.ErrCorrupt) {
		return []core.Problem{{Where: "file", What: err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Check(ctx)
}

func openToCheck(ctx context.Context, data, address string) (store.Store, error) {
	if address != "" {
		database, err := postgres.Open(ctx, address)
		if err != nil {
			return nil, err
		}
		return pgstore.Open(ctx, database, pgstore.Options{})
	}
	path := filepath.Join(data, databaseName)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("there is no database to check: %w", err)
	}
	return sqlite.Open(ctx, path, sqlite.Options{})
}
