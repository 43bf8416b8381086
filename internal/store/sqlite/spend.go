package sqlite

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
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

// How spent ids are let go of: in memory a few with each new one, in the database a few with a commit now and then.
const (
	forgetAtOnce     = 64
	forgetRowsAtOnce = 1000
	// manyUnsaved ids are saved at once; fewer wait for the next commit, or for saveAfter.
	manyUnsaved = 4096
	saveAfter   = 100 * time.Millisecond
)

// spent knows the ids that are used up. What it answers is decided in memory; the writer saves it with its commits.
// Ids go by the minute in which they end, rounded up. Safe for concurrent use.
type spent struct {
	mu      sync.Mutex
	known   map[spentID]struct{}
	ends    map[int64][]spentID // the known ones, by the minute in which they end
	over    [][]spentID         // those of minutes gone by, to be forgotten
	swept   int64               // the minute up to which over was filled
	unsaved map[int64][]byte    // the ids not yet in the database, one after the other, by minute
	count   int                 // of unsaved ids
	forgot  int64               // the minute up to which the database's rows are known to be deleted
	saveNow func()              // asks the writer to save
	timer   *time.Timer         // asks it after a while
}

func newSpent(saveNow func()) *spent {
	return &spent{
		known: map[spentID]struct{}{}, ends: map[int64][]spentID{}, unsaved: map[int64][]byte{}, saveNow: saveNow,
	}
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// spend records the id and reports whether it was fresh.
func (s *spent) spend(id spentID, until time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(time.Now())
	if _, used := s.known[id]; used {
		return false
	}
	minute := minuteOf(until) + 1
	s.remember(id, minute)
	s.unsaved[minute] = append(s.unsaved[minute], id[:]...)
	s.count++
	switch s.count {
	case 1:
		s.arm()
	case manyUnsaved:
		s.saveNow()
	}
	return true
}

func (s *spent) remember(id spentID, minute int64) {
	s.known[id] = struct{}{}
	s.ends[minute] = append(s.ends[minute], id)
}

// forget lets go of a few ids whose time is over.
func (s *spent) forget(now time.Time) {
	if minute := minuteOf(now); minute > s.swept {
		for end, ids := range s.ends {
			if end <= minute {
				s.over = append(s.over, ids)
				delete(s.ends, end)
			}
		}
		s.swept = minute
	}
	for n := 0; n < forgetAtOnce && len(s.over) > 0; {
		last := len(s.over) - 1
		ids := s.over[last]
		few := min(len(ids), forgetAtOnce-n)
		for _, id := range ids[:few] {
			delete(s.known, id)
		}
		n += few
		if s.over[last] = ids[few:]; len(s.over[last]) == 0 {
			s.over = s.over[:last]
		}
	}
}

// take hands over what is not yet saved; the writer gives it back when the commit fails.
func (s *spent) take() map[int64][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == 0 {
		return nil
	}
	s.timer.Stop()
	taken := s.unsaved
	s.unsaved, s.count = map[int64][]byte{}, 0
	return taken
}

// giveBack takes again what could not be saved, but for what is over by now.
func (s *spent) giveBack(taken map[int64][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := minuteOf(time.Now())
	for minute, ids := range taken {
		if minute > now {
			s.unsaved[minute] = append(s.unsaved[minute], ids...)
			s.count += len(ids) / len(spentID{})
		}
	}
	if s.count > 0 {
		s.arm()
	}
}

// arm has the unsaved ids saved after a while. The caller holds the lock.
func (s *spent) arm() {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(saveAfter, s.saveNow)
}

// stop ends the timer.
func (s *spent) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
}

// load reads what an earlier process saved.
func (s *spent) load(q *queries.Queries) error {
	rows, err := q.Spent(background, minuteOf(time.Now()))
	if err != nil {
		return fault(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range rows {
		for ids := row.Ids; len(ids) >= len(spentID{}); ids = ids[len(spentID{}):] {
			s.remember(spentID(ids), row.Until)
		}
	}
	return nil
}

// save writes the taken ids within the writer's transaction and, once a minute, deletes rows that are over.
func (s *spent) save(q *queries.Queries, taken map[int64][]byte) error {
	for minute, ids := range taken {
		if err := q.AddSpent(background, queries.AddSpentParams{Until: minute, Ids: ids}); err != nil {
			return err
		}
	}
	now := minuteOf(time.Now())
	if now <= s.forgot {
		return nil
	}
	gone, err := q.ForgetSpent(background, queries.ForgetSpentParams{Now: now, Max: forgetRowsAtOnce})
	if err == nil && gone < forgetRowsAtOnce {
		s.forgot = now
	}
	return err
}
