package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
)

// A spentID stands for a scope and an id: the first bytes of a hash, so that what is kept is small whatever was sent.
type spentID [16]byte

func spentIDOf(scope, id string) spentID {
	h := sha256.New()
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(scope)))
	h.Write(size[:])
	h.Write([]byte(scope))
	h.Write([]byte(id))
	return spentID(h.Sum(nil)[:16])
}

// minuteAfter is the minute in which an id is over, rounded up.
func minuteAfter(t time.Time) int64 { return t.Unix()/60 + 1 }

// maxSpends is how many ids one statement uses up.
const maxSpends = 1000

// unsynced lets a commit not wait for the disk: ids may be forgotten by a crash within a moment.
var unsynced = queries.SetLocalParams{
	Names:    []string{"synchronous_commit", "lock_timeout", "statement_timeout"},
	Settings: []string{"off", milliseconds(lockLimit), milliseconds(statementLimit)},
}

// A spend is one id on its way.
type spend struct {
	id    spentID
	until int64 // a minute
	done  chan struct{}
	fresh bool
	err   error
}

// spends uses up ids, those of callers that come together with one statement. Safe for concurrent use.
type spends struct {
	pool *pgxpool.Pool

	mu     sync.Mutex
	filled sync.Cond
	queue  []*spend
	closed bool
	ended  chan struct{}
}

// newSpends starts a goroutine, which ends with close.
func newSpends(pool *pgxpool.Pool) *spends {
	s := &spends{pool: pool, ended: make(chan struct{})}
	s.filled.L = &s.mu
	go s.run()
	return s
}

// spend records the id and reports whether it was fresh. The end of ctx ends the wait for the answer.
func (s *spends) spend(ctx context.Context, id spentID, until time.Time) (bool, error) {
	one := &spend{id: id, until: minuteAfter(until), done: make(chan struct{})}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return false, store.ErrClosed
	}
	s.queue = append(s.queue, one)
	s.filled.Signal()
	s.mu.Unlock()
	select {
	case <-one.done:
		return one.fresh, one.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// run serves the queue until it is closed and empty.
func (s *spends) run() {
	defer close(s.ended)
	for {
		group := s.take()
		if len(group) == 0 {
			return
		}
		s.record(group)
		for _, one := range group {
			close(one.done)
		}
	}
}

// take waits for spends and gives those that are there; none when there will be no more.
func (s *spends) take() []*spend {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.closed {
		s.filled.Wait()
	}
	n := min(len(s.queue), maxSpends)
	group := slices.Clone(s.queue[:n])
	s.queue = slices.Delete(s.queue, 0, n)
	return group
}

// record uses up the ids of a group. Whoever came first with an id gets it; the ids are in order, so that two nodes with the
// same ones do not wait for each other in a circle.
func (s *spends) record(group []*spend) {
	firsts := map[spentID]*spend{}
	for _, one := range group {
		if firsts[one.id] == nil {
			firsts[one.id] = one
		}
	}
	ordered := make([]*spend, 0, len(firsts))
	for _, one := range firsts {
		ordered = append(ordered, one)
	}
	slices.SortFunc(ordered, func(a, b *spend) int { return bytes.Compare(a.id[:], b.id[:]) })
	var p queries.SpendParams
	for _, one := range ordered {
		p.Ids, p.Untils = append(p.Ids, pgtype.UUID{Bytes: one.id, Valid: true}), append(p.Untils, one.until)
	}
	fresh, err := s.insert(p)
	for _, one := range group {
		one.err = err
	}
	for _, id := range fresh {
		firsts[id.Bytes].fresh = true
	}
}

func (s *spends) insert(p queries.SpendParams) ([]pgtype.UUID, error) {
	conn, err := s.pool.Acquire(background)
	if err != nil {
		return nil, unavailable(err)
	}
	defer conn.Release()
	q := queries.New(newPipeline(conn.Conn()))
	_ = q.SetLocal(background, unsynced) // which only puts it off
	fresh, err := q.Spend(background, p)
	return fresh, fault(conn.Conn(), err)
}

// close lets no more in, and waits until what is queued is answered.
func (s *spends) close() {
	s.mu.Lock()
	s.closed = true
	s.filled.Signal()
	s.mu.Unlock()
	<-s.ended
}
