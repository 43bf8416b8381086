package sqlite

import (
	"fmt"
	"os"

	"github.com/rouse-dev/rouse/internal/store"
)

// WriteIndex brings the topic index up to date within the transaction, long before that is due.
func WriteIndex(t store.Tx) error { return t.(*tx).settle() }

// Exec runs a statement within the transaction. A failure spoils nothing.
func Exec(t store.Tx, statement string) error {
	own := t.(*tx)
	own.wrote = true
	_, err := own.w.session.ExecContext(background, statement)
	return err
}

// LimitSize lets the file grow by some pages at most from what it has, as if its disk were full then. A negative number
// takes the limit away.
func LimitSize(t store.Tx, more int) error {
	w := t.(*tx).w
	limit := 1 << 30
	if more >= 0 {
		if err := w.session.QueryRowContext(background, "PRAGMA page_count").Scan(&limit); err != nil {
			return err
		}
		limit += more
	}
	return Exec(t, fmt.Sprintf("PRAGMA max_page_count = %d", limit))
}

// Queued is how many updates wait for the writer.
func Queued(s *Store) int { return s.writer.updates.Queued() }

// Spoil makes the transaction one that cannot be kept, as a failed statement does.
func Spoil(t store.Tx, err error) { t.(*tx).spoil(err) }

// Indexed tells up to where the topic index is written, and how many entries wait in memory.
func Indexed(s *Store) (indexed int64, waiting int) {
	s.writer.tail.mu.Lock()
	defer s.writer.tail.mu.Unlock()
	return int64(s.writer.tail.low), s.writer.tail.count
}

// HoldSync holds syncs back: the first is told on begun, each waits for end, then syncs the file that it gives, the log for
// nil. Once end is closed none waits any more. It is called while nothing is being written.
func HoldSync(s *Store) (begun <-chan struct{}, end chan *os.File) {
	begins, end := make(chan struct{}, 1), make(chan *os.File)
	s.wal.sync = func(f *os.File) error {
		select {
		case begins <- struct{}{}:
		default:
		}
		if other := <-end; other != nil {
			f = other
		}
		return syncData(f)
	}
	return begins, end
}

// Viewers is how many views can run at once.
func Viewers(s *Store) int { return cap(s.viewers) }
