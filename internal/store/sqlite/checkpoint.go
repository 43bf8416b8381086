package sqlite

import (
	"database/sql"
	"log/slog"
	"time"
)

// checkpointEach is how often the write-ahead log is brought into the database while there are commits.
const checkpointEach = 400 * time.Millisecond

// A checkpointer brings the write-ahead log into the database while the writer goes on, which would else do so within a
// commit, and keep everybody waiting for tens of milliseconds. It has a connection of its own.
type checkpointer struct {
	db      *sql.DB
	log     *slog.Logger
	written chan struct{} // something was committed
	stop    chan struct{}
	done    chan struct{}
}

func newCheckpointer(path string, log *slog.Logger) (*checkpointer, error) {
	db, err := connect(path, checkpointerPragmas)
	if err != nil {
		return nil, err
	}
	return &checkpointer{
		db: db, log: log, written: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}, nil
}

// note is told of each commit. It does not block.
func (c *checkpointer) note() {
	select {
	case c.written <- struct{}{}:
	default:
	}
}

func (c *checkpointer) run() {
	defer close(c.done)
	for {
		select {
		case <-c.written:
		case <-c.stop:
			return
		}
		select {
		case <-time.After(checkpointEach):
		case <-c.stop:
			return
		}
		if _, err := c.db.ExecContext(background, checkpoint); err != nil {
			c.log.Warn("the write-ahead log could not be brought into the database; it will be tried again", "error", fault(err))
		}
	}
}

// close ends run and closes the connection.
func (c *checkpointer) close() error {
	close(c.stop)
	<-c.done
	return c.db.Close()
}
