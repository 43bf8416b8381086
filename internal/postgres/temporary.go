package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// MakeTemporary makes a database of a name of its own on the server at an address, by the rights of whom the address names,
// and returns its address and what removes it with all connections to it. The database at the address itself is left alone.
func MakeTemporary(ctx context.Context, address string) (temporary string, remove func(context.Context) error, err error) {
	beside, err := Open(ctx, address)
	if err != nil {
		return "", nil, err
	}
	name := "rouse_dev_" + strings.ToLower(rand.Text()[:12])
	quoted := pgx.Identifier{name}.Sanitize()
	if err := beside.run(ctx, "CREATE DATABASE "+quoted+" ENCODING 'UTF8' TEMPLATE template0"); err != nil {
		return "", nil, fmt.Errorf("making a database on the server at %s: %w", beside, err)
	}
	return withDatabase(address, name), func(ctx context.Context) error {
		if err := beside.run(ctx, "DROP DATABASE "+quoted+" WITH (FORCE)"); err != nil {
			return fmt.Errorf("removing the database %s: %w", name, err)
		}
		return nil
	}, nil
}

// run runs one statement on a connection of its own.
func (d *Database) run(ctx context.Context, statement string) error {
	conn, err := d.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol)
	return err
}

// withDatabase is the address with another database's name.
func withDatabase(address, name string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	path, parameters, has := strings.Cut(rest, "?")
	authority, _, _ := strings.Cut(path, "/")
	address = scheme + "://" + authority + "/" + name
	if !has {
		return address
	}
	// A parameter counts for more than the path.
	var kept []string
	for _, parameter := range strings.Split(parameters, "&") {
		if key, _, _ := strings.Cut(parameter, "="); key != "dbname" && key != "database" {
			kept = append(kept, parameter)
		}
	}
	return address + "?" + strings.Join(kept, "&")
}
