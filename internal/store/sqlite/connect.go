package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"

	"github.com/rouse-dev/rouse/internal/store"
)

// A commit does not wait for the disk (synchronous NORMAL); what makes it durable is the sync of type wal. The write-ahead
// log is brought into the database in the background (type checkpointer); only when that cannot keep up does the writer do
// it, beyond 16,000 pages, which are 64 MB. The writer's larger cache holds the inner pages of the indexes. Where fsync does
// not reach the disk (macOS), checkpoints use what does.
var (
	writerPragmas = []string{
		"busy_timeout(5000)",
		"journal_mode(WAL)",
		"synchronous(NORMAL)",
		"checkpoint_fullfsync(1)",
		"foreign_keys(1)",
		"secure_delete(1)",
		"cache_size(-65536)", // KiB
		"wal_autocheckpoint(16000)",
		"journal_size_limit(67108864)",
	}
	checkpointerPragmas = []string{
		"busy_timeout(5000)",
		"synchronous(NORMAL)",
		"checkpoint_fullfsync(1)",
	}
	viewerPragmas = []string{
		"busy_timeout(5000)",
		"query_only(1)",
	}
)

// init has SQLite sync with fdatasync where there is one, as its builds for Linux do: a commit is as durable, and need not
// wait until the file system's journal has the file's new time as well. Where there is none nothing changes.
func init() { _, _ = sqlite.Fdatasync(true) }

// connect gives a pool for the file. It opens nothing yet.
func connect(path string, pragmas []string) (*sql.DB, error) {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive
		path = "/" + path
	}
	// _dqs=0: a misspelt column is an error, not a string. _error_rc=1: a failing open says why.
	query := url.Values{"_pragma": pragmas, "_dqs": {"0"}, "_error_rc": {"1"}}
	file := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	return sql.Open("sqlite", file.String())
}

// applicationID in a file's header says that it is ours.
const applicationID = 0x526f7573

// checkedWhole is the size in bytes up to which a file is checked whole when it is opened. A larger one would keep a start
// waiting; damage in it is found when it is read.
const checkedWhole = 16 << 20

// examine makes sure that the file is a database of ours, a new one perhaps, in a state to be used.
func examine(ctx context.Context, db *sql.DB, path string) error {
	var id, tables int
	var mode string
	err := db.QueryRowContext(ctx, "SELECT (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema), "+
		"(SELECT journal_mode FROM pragma_journal_mode)").Scan(&id, &tables, &mode)
	switch {
	case err != nil:
		return err
	case mode != "wal":
		return fmt.Errorf("the file system cannot hold a write-ahead log: SQLite chose journal mode %s", mode)
	case id != applicationID && (id != 0 || tables > 0):
		return fmt.Errorf("the file is a database of another program (application id %d, %d tables and indexes)", id, tables)
	}
	if id == 0 {
		_, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID))
		return err
	}
	if info, err := os.Stat(path); err != nil || info.Size() > checkedWhole {
		return err
	}
	var result string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&result); err != nil {
		return err
	}
	if result != "ok" {
		return fmt.Errorf("%w: %s", store.ErrCorrupt, result)
	}
	return nil
}
