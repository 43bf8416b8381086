package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// oldestServer is the first version of PostgreSQL whose abilities are all that is used.
	oldestServer     = 140000
	oldestServerName = "14"

	connectTimeout = 10 * time.Second
	// A connection is given up when the other end has not answered for this long.
	unansweredTimeout = 15 * time.Second
)

// poolerParameter is our own in an address: pgbouncer=true says that connections lead to a pooler, which lends a server's
// connection for one transaction at a time.
const poolerParameter = "pgbouncer"

// A Database is one that can be connected to. It is safe for concurrent use.
type Database struct {
	config *pgx.ConnConfig
	pooled bool
}

// Open reads an address, such as postgres://user:password@host/database, connects to see what is there, and disconnects. It
// refuses a server before version 14 and a database whose encoding is not UTF8. What the address does not say comes from
// the variables and files that PostgreSQL's own programs read (PGPASSWORD, PGPASSFILE, ~/.pgpass …). An error does not hold
// the password.
func Open(ctx context.Context, address string) (*Database, error) {
	if !IsAddress(address) {
		return nil, errors.New("the database's address must begin with postgres://, such as postgres://rouse@db.example.com/rouse")
	}
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, errors.New("the database's address cannot be read: it is postgres://user:password@host:port/database?parameter=value, " +
			"with whatever has a meaning in a URL escaped, and known values of parameters") // the cause may quote it
	}
	d := &Database{config: config}
	said := config.RuntimeParams[poolerParameter]
	delete(config.RuntimeParams, poolerParameter)
	if said != "" {
		if d.pooled, err = strconv.ParseBool(said); err != nil {
			return nil, fmt.Errorf("the database's address: %s: must be true or false", poolerParameter)
		}
	}
	d.prepare()
	if err := d.examine(ctx, said == ""); err != nil {
		return nil, fmt.Errorf("the database at %s: %w", d, err)
	}
	return d, nil
}

// IsAddress reports whether a text is meant as the address of a PostgreSQL database.
func IsAddress(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// HasPassword reports whether an address holds a password, or may do so: one that is not escaped makes no sense of a URL.
func HasPassword(address string) bool {
	_, rest, _ := strings.Cut(address, "://")
	if at := strings.LastIndex(rest, "@"); at >= 0 && strings.Contains(rest[:at], ":") {
		return true
	}
	_, parameters, _ := strings.Cut(rest, "?")
	for _, parameter := range strings.Split(parameters, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		if strings.Contains(strings.ToLower(name), "password") || strings.Contains(name, "%") {
			return true
		}
	}
	return false
}

// prepare sets how connections are made.
func (d *Database) prepare() {
	if d.config.ConnectTimeout == 0 {
		d.config.ConnectTimeout = connectTimeout
	}
	dialer := &net.Dialer{Control: giveUp, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: unansweredTimeout / 3, Interval: unansweredTimeout / 3, Count: 2,
	}}
	d.config.DialFunc = dialer.DialContext
	if d.config.RuntimeParams["application_name"] == "" && os.Getenv("PGAPPNAME") == "" {
		d.config.RuntimeParams["application_name"] = "rouse"
	}
	if d.pooled {
		d.expectPooler()
	}
}

// expectPooler has statements prepared without a name each time: a name is another connection's the next time.
func (d *Database) expectPooler() {
	d.config.StatementCacheCapacity = 0
	if d.config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		d.config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
}

// examine connects and looks at the server; also for a pooler if it is told to.
func (d *Database) examine(ctx context.Context, forPooler bool) error {
	conn, err := d.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var version int
	var encoding string
	var process uint32
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::integer, current_setting('server_encoding'), pg_backend_pid()`,
		pgx.QueryExecModeExec).Scan(&version, &encoding, &process)
	switch {
	case err != nil:
		return err
	case version < oldestServer:
		return fmt.Errorf("the server has version %d.%d of PostgreSQL: %s or later is needed", version/10000, version%10000, oldestServerName)
	case encoding != "UTF8":
		return fmt.Errorf("the database has encoding %s: make one with createdb --encoding=UTF8 --template=template0", encoding)
	}
	// A pooler cannot say which of the server's processes a connection is with: it is another one each time.
	if forPooler && process != conn.PgConn().PID() {
		d.pooled = true
		d.expectPooler()
	}
	return nil
}

// Pooled reports whether a pooler stands between, as the address says or as was found: then nothing that outlives a
// transaction belongs to a connection, and LISTEN hears nothing.
func (d *Database) Pooled() bool { return d.pooled }

// String says where the database is, without the password.
func (d *Database) String() string {
	host := d.config.Host
	if !strings.HasPrefix(host, "/") {
		host = net.JoinHostPort(host, strconv.Itoa(int(d.config.Port)))
	}
	return fmt.Sprintf("%s (database %q, user %q)", host, d.config.Database, d.config.User)
}

// Config is a copy of how to connect, password included, for what connects in ways of its own.
func (d *Database) Config() *pgx.ConnConfig { return d.config.Copy() }

// Connect makes a connection. The caller closes it.
func (d *Database) Connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.ConnectConfig(ctx, d.Config())
}

// Pool gives a pool of at most so many connections, which are made as they are needed. The caller closes it.
func (d *Database) Pool(ctx context.Context, most int) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, err
	}
	config.ConnConfig = d.Config()
	config.MaxConns = int32(most)
	return pgxpool.NewWithConfig(ctx, config)
}
