package pgtest

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// noPooler is what a machine without PgBouncer is told.
const noPooler = "pgbouncer is neither in PATH nor in /usr/sbin: install the package pgbouncer (apt-get install pgbouncer)"

const poolerConfig = `[databases]
* = host=%[1]s

[pgbouncer]
listen_addr =
unix_socket_dir = %[2]s
listen_port = 5432
auth_type = trust
auth_file = %[2]s/users
pool_mode = transaction
default_pool_size = 8
max_client_conn = 500
`

// Pooled starts a PgBouncer in transaction mode before the server and returns the address of the database by way of it. It goes
// with the test.
func Pooled(t testing.TB, address string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; !exists(program) {
			t.Fatal(noPooler)
		}
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	directory, err := os.MkdirTemp("", "rouse-pool-") // a test's own has too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	for name, content := range map[string]string{
		"config": fmt.Sprintf(poolerConfig, u.Query().Get("host"), directory), "users": "\"rouse\" \"\"\n",
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := giveAway(directory); err != nil {
		t.Fatal(err)
	}
	pooler := exec.Command(program, filepath.Join(directory, "config"))
	demote(pooler)
	if err := pooler.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = pooler.Process.Kill()
		_ = pooler.Wait()
	})
	u.RawQuery = url.Values{"host": {directory}}.Encode()
	for end := time.Now().Add(20 * time.Second); ; {
		conn, err := pgx.Connect(t.Context(), u.String())
		if err == nil {
			_ = conn.Close(t.Context())
			return u.String()
		}
		if time.Now().After(end) {
			t.Fatalf("the pooler does not answer: %v", err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
