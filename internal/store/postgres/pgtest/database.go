package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

var databases atomic.Int64

// Database makes an empty database and returns its address. It goes with the server.
func Database(t testing.TB) string {
	t.Helper()
	c, err := theCluster()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("test_%d", databases.Add(1))
	Exec(t, c.address("postgres"), "CREATE DATABASE "+name+" TEMPLATE template0")
	return c.address(name)
}

// address is that of a database of the cluster.
func (c *cluster) address(database string) string {
	return "postgres://rouse@/" + database + "?" + url.Values{"host": {c.directory}}.Encode()
}

// Exec runs statements one by one, on a connection of its own.
func Exec(t testing.TB, address string, statements ...string) {
	t.Helper()
	conn := Connect(t, address)
	defer conn.Close(context.Background())
	for _, statement := range statements {
		if _, err := conn.Exec(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", strings.SplitN(statement, "\n", 2)[0], err)
		}
	}
}

// Connect makes a connection, which the caller closes.
func Connect(t testing.TB, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
