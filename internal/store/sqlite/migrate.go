package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"encoding/base32"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
)

//go:generate go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the tables up to date and makes the log's epoch when the database is new. The caller has the lock.
func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files)
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
	if _, err := provider.Up(ctx); err != nil {
		return err
	}
	return queries.New(db).CreateLog(ctx, newEpoch())
}

// newEpoch gives four random characters of lower-case base32.
func newEpoch() string {
	var b [3]byte
	rand.Read(b[:])
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))[:4]
}
