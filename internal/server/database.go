package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rouse-dev/rouse/internal/bus"
	pgbus "github.com/rouse-dev/rouse/internal/bus/postgres"
	"github.com/rouse-dev/rouse/internal/postgres"
	"github.com/rouse-dev/rouse/internal/store"
	pgstore "github.com/rouse-dev/rouse/internal/store/postgres"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
)

// openDatabase opens the database that the options name: SQLite's in the data directory, or one of PostgreSQL's with a bus
// that reaches the other nodes.
func (s *Server) openDatabase(ctx context.Context, o Options) error {
	if o.Database == "" {
		return s.openFile(ctx)
	}
	database, err := postgres.Open(ctx, o.Database)
	if err != nil {
		return err
	}
	kept, err := pgstore.Open(ctx, database, pgstore.Options{Master: o.Master.ID(), Logger: s.log})
	if err != nil {
		return err
	}
	s.store = kept
	channel, err := kept.Channel(ctx)
	if err != nil {
		return err
	}
	follower, err := kept.Follow(ctx)
	if err != nil {
		return err
	}
	hints := pgbus.Start(pgbus.Options{Database: database, Channel: channel, Follower: follower, Logger: s.log})
	s.bus, s.closeBus = hints, hints.Close
	if database.Pooled() {
		s.log.Info("the database is behind a pooler: other nodes are not heard, the log is looked at many times a second instead")
	}
	return nil
}

// openFile opens the database in the data directory. Who holds it is alone there.
func (s *Server) openFile(ctx context.Context) error {
	kept, err := sqlite.Open(ctx, filepath.Join(s.data, databaseName), sqlite.Options{Logger: s.log})
	if errors.Is(err, store.ErrLocked) {
		return fmt.Errorf("%w: stop it, or give this one another --data (this one's is %s)", err, s.data)
	}
	if err != nil {
		return fmt.Errorf("opening the database: %w", err)
	}
	s.store, s.bus, s.closeBus = kept, new(bus.Local), func() {}
	return nil
}
