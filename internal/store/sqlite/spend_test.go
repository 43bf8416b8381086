package sqlite

import (
	"encoding/binary"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
)

func numbered(n int) spentID {
	var id spentID
	binary.BigEndian.PutUint64(id[:], uint64(n))
	return id
}

// TestSpentForgets lets ids go whose time is over, and no others.
func TestSpentForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var saves atomic.Int64
		s := newSpent(func() { saves.Add(1) })
		defer s.stop()
		const many = 1000
		for i := range many {
			s.spend(numbered(i), time.Now().Add(2*time.Minute))
		}
		lasting := numbered(many)
		s.spend(lasting, time.Now().Add(24*time.Hour))
		time.Sleep(time.Minute)
		if s.spend(numbered(0), time.Now().Add(2*time.Minute)) {
			t.Error("fresh within its time")
		}
		if got := saves.Load(); got != 1 {
			t.Errorf("asked to save %d times, want once", got)
		}
		if taken := s.take(); len(taken) != 2 {
			t.Errorf("ids to save end in %d minutes, want 2", len(taken))
		}

		time.Sleep(time.Hour)
		for i := range many/forgetAtOnce + 1 {
			s.spend(numbered(2*many+i), time.Now().Add(time.Hour))
		}
		if got, want := len(s.known), many/forgetAtOnce+2; got != want {
			t.Errorf("%d ids are known, want the %d that are not over", got, want)
		}
		if s.spend(lasting, time.Now().Add(24*time.Hour)) {
			t.Error("the lasting one is fresh again")
		}
	})
}

// TestSpentGivenBack keeps what could not be saved for the next time, unless it is over by then.
func TestSpentGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var saves atomic.Int64
		s := newSpent(func() { saves.Add(1) })
		defer s.stop()
		s.spend(numbered(1), time.Now().Add(time.Minute))
		s.spend(numbered(2), time.Now().Add(time.Hour))
		taken := s.take()
		s.spend(numbered(3), time.Now().Add(time.Hour))
		time.Sleep(10 * time.Minute)
		s.giveBack(taken)
		time.Sleep(time.Second)
		if got := saves.Load(); got != 2 {
			t.Errorf("asked to save %d times, want 2", got)
		}
		count := 0
		for _, ids := range s.take() {
			count += len(ids) / len(spentID{})
		}
		if count != 2 {
			t.Errorf("%d ids to save, want 2", count)
		}
	})
}

// TestStoreInBubble runs a store on fake time, which must not make its writer wait for ever, and finds a used-up id saved
// although no update came.
func TestStoreInBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "rouse.db"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if fresh, err := s.Spend(t.Context(), "scope", "id", time.Now().Add(time.Hour)); !fresh || err != nil {
			t.Errorf("Spend: %v, %v", fresh, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		var rows []queries.SpentRow
		err = s.Update(t.Context(), func(tx store.Tx) (err error) {
			rows, err = s.writer.q.Spent(background, minuteOf(time.Now()))
			return err
		})
		if err != nil || len(rows) != 1 {
			t.Errorf("saved rows: %v, %v", rows, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
