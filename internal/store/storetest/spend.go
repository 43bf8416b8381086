package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// spend uses up an id and reports whether it was fresh.
func (s *suite) spend(scope, id string, until time.Time) bool {
	s.Helper()
	return got[bool](s)(s.Spend(s.Context(), scope, id, until))
}

func testSpend(s *suite) {
	until := time.Now().Add(time.Hour)
	ids := []struct{ scope, id string }{
		{"key-1", "a"}, {"key-1", "b"}, {"key-2", "a"}, {"key-", "1a"}, {"", "key-1a"}, {"key-1a", ""}, {"日本", "a\x00b"},
	}
	for _, id := range ids {
		s.same(fmt.Sprintf("fresh %q", id), true, s.spend(id.scope, id.id, until))
	}
	again := func(when string) {
		for _, id := range ids {
			s.same(fmt.Sprintf("fresh %s %q", when, id), false, s.spend(id.scope, id.id, until))
			s.same(fmt.Sprintf("fresh %s until later %q", when, id), false, s.spend(id.scope, id.id, until.Add(time.Hour)))
		}
	}
	again("again")
	s.reopen()
	again("after a restart")
	s.reopen()
	again("after another")
}

func testSpendConcurrently(s *suite) {
	const callers, each = 50, 200
	until := time.Now().Add(time.Hour)
	fresh := make([]atomic.Int64, each)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range each {
				if s.spend("scope", fmt.Sprint(i), until) {
					fresh[i].Add(1)
				}
			}
		})
	}
	all.Wait()
	for i := range fresh {
		s.same(fmt.Sprintf("times id %d was fresh", i), int64(1), fresh[i].Load())
	}
	s.reopen()
	for i := range each {
		s.same(fmt.Sprintf("id %d fresh after a restart", i), false, s.spend("scope", fmt.Sprint(i), until))
	}
}
