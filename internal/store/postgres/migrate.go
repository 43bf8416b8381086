package postgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/rouse-dev/rouse/internal/postgres"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
)

//go:generate go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate

//go:embed migrations/*.sql
var migrations embed.FS

// migrationClass is the first half of the advisory lock under which tables are made; see lockClass.
const migrationClass = 0x726f7574

// errOtherMaster refuses a node that could read nothing of what the others sealed.
var errOtherMaster = errors.New("the database was made with another master key: give every node the same one, " +
	"by --master-key-file or ROUSE_SECRET")

// migrate brings the tables up to date, makes the log's epoch when the database is new, and compares the master key. Nodes
// that start together do so one after the other.
func migrate(ctx context.Context, d *postgres.Database, master string) (err error) {
	conn, err := d.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fault(conn, err)
	}
	defer func() {
		if err != nil {
			rollback(conn)
		}
	}()
	if err := queries.New(tx).LockSchema(ctx, migrationClass); err != nil {
		return fault(conn, err)
	}
	if err := makeTables(ctx, d); err != nil {
		return fault(conn, err)
	}
	if err := claim(ctx, tx, master); err != nil {
		return fault(conn, err)
	}
	return fault(conn, tx.Commit(ctx))
}

// makeTables runs the migrations that the database has not had.
func makeTables(ctx context.Context, d *postgres.Database) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*d.Config())
	defer db.Close()
	return up(ctx, db, files)
}

func up(ctx context.Context, db *sql.DB, files fs.FS) error {
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files)
	if err != nil {
		return err
	}
	has, knows, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if has > knows {
		return fmt.Errorf("the database was made by a later version: it has schema %d, this program knows %d", has, knows)
	}
	_, err = provider.Up(ctx)
	return err
}

// claim makes the one row of the log unless it is there, and keeps the id of the first master key.
func claim(ctx context.Context, tx pgx.Tx, master string) error {
	q := queries.New(tx)
	if err := q.CreateLog(ctx, newEpoch()); err != nil {
		return err
	}
	kept, err := q.ClaimMaster(ctx, master)
	if err == nil && master != "" && kept != master {
		return errOtherMaster
	}
	return err
}

// newEpoch gives four random characters of lower-case base32.
func newEpoch() string {
	var b [3]byte
	rand.Read(b[:])
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))[:4]
}
