package storetest

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func testSameKey(s *suite) {
	const callers = 50
	app := s.addApp()
	for round := range 10 {
		o := occurrence(app.ID, "topic")
		o.Key = fmt.Sprintf("key %d", round)
		var accepted, refused atomic.Int64
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				switch err := s.Update(s.Context(), func(t store.Tx) error { return fails(t.Append(o)) }); {
				case err == nil:
					accepted.Add(1)
				case errors.Is(err, store.ErrExists):
					refused.Add(1)
				default:
					s.Errorf("unexpected error: %v", err)
				}
			})
		}
		all.Wait()
		s.same("accepted", int64(1), accepted.Load())
		s.same("refused", int64(callers-1), refused.Load())
		s.check(func(r store.Reader) {
			s.same("in the log", round+1, len(got[[]wake.Occurrence](s)(r.Occurrences(app.ID, []string{"topic"}, 0, callers))))
		})
	}
}

// A follower reads some topics by cursor while others write.
type follower struct {
	topics []string
	toHead bool // where it finds nothing more it moves to the end of the log, as a reader may
	cursor wake.Seq
	read   []string // keys
}

// step reads one page and reports whether there was anything.
func (f *follower) step(s *suite, app string) bool {
	const page = 20
	more := false
	s.view(func(r store.Reader) error {
		head := got[store.Log](s)(r.Log()).Head
		found := got[[]wake.Occurrence](s)(r.Occurrences(app, f.topics, f.cursor, page))
		for _, o := range found {
			if o.Seq <= f.cursor || o.Seq > head {
				s.Errorf("read place %d after %d of a log that ends at %d", o.Seq, f.cursor, head)
			}
			f.cursor = o.Seq
			f.read = append(f.read, o.Key)
		}
		if more = len(found) > 0; len(found) < page && f.toHead {
			f.cursor = head
		}
		return nil
	})
	return more
}

// testCursors has many publishers write and readers follow by cursor: none may skip or reorder anything.
func testCursors(s *suite) {
	const publishers, each, topics = 128, 25, 8
	app := s.addApp()
	topic := func(publisher int) string { return fmt.Sprintf("topic/%d", publisher%topics) }
	followers := []*follower{}
	for i := range topics {
		followers = append(followers, &follower{topics: []string{topic(i)}, toHead: i%2 == 0})
	}
	followers = append(followers,
		&follower{topics: []string{topic(0), topic(1), topic(2)}},
		&follower{topics: []string{topic(0), topic(3), topic(5), "none"}, toHead: true},
	)

	var publishing, following sync.WaitGroup
	done := make(chan struct{})
	for p := range publishers {
		publishing.Go(func() {
			for i := range each {
				o := occurrence(app.ID, topic(p))
				o.Key = fmt.Sprintf("%d/%d", p, i)
				s.is("append", nil, s.Update(s.Context(), func(t store.Tx) error { return fails(t.Append(o)) }))
			}
		})
	}
	for _, f := range followers {
		following.Go(func() {
			for {
				ended := false
				select {
				case <-done:
					ended = true
				default:
				}
				if !f.step(s, app.ID) {
					if ended {
						return
					}
					runtime.Gosched()
				}
			}
		})
	}
	publishing.Wait()
	close(done)
	following.Wait()
	for _, f := range followers {
		s.complete(f, publishers, each, topic)
	}
}

// complete checks that a follower has read all of its topics, and each publisher's in order.
func (s *suite) complete(f *follower, publishers, each int, topic func(int) string) {
	s.Helper()
	next := map[int]int{}
	for _, key := range f.read {
		var p, i int
		if _, err := fmt.Sscanf(key, "%d/%d", &p, &i); err != nil {
			s.Fatalf("read key %q: %v", key, err)
		}
		if i != next[p] {
			s.Fatalf("topics %v: read %d of publisher %d, want %d", f.topics, i, p, next[p])
		}
		next[p]++
	}
	for p := range publishers {
		want := 0
		for _, t := range f.topics {
			if t == topic(p) {
				want = each
			}
		}
		if next[p] != want {
			s.Errorf("topics %v: read %d of publisher %d, want %d", f.topics, next[p], p, want)
		}
	}
}

// testSlowTransactions lets a transaction take its place in the log early and commit late, while another has the chance to
// overtake it: a reader must not have passed the place of the slow one by then.
func testSlowTransactions(s *suite) {
	const rounds = 10
	app := s.addApp()
	f := &follower{topics: []string{"topic"}, toHead: true}
	for round := range rounds {
		o := func(who string) wake.Occurrence {
			o := occurrence(app.ID, "topic")
			o.Key = fmt.Sprintf("%s/%d", who, round)
			return o
		}
		var all sync.WaitGroup
		placed, overtaken := make(chan struct{}), make(chan struct{})
		var once sync.Once
		all.Go(func() {
			s.is("the slow one", nil, s.Update(s.Context(), func(t store.Tx) error {
				if _, err := t.Append(o("slow")); err != nil {
					return err
				}
				once.Do(func() { close(placed) })
				select {
				case <-overtaken:
				case <-time.After(20 * time.Millisecond): // a store may make the other one wait
				}
				return nil
			}))
		})
		all.Go(func() {
			<-placed
			s.is("the fast one", nil, s.Update(s.Context(), func(t store.Tx) error { return fails(t.Append(o("fast"))) }))
			f.step(s, app.ID)
			close(overtaken)
		})
		all.Wait()
		f.step(s, app.ID)
	}
	read := map[string]int{}
	for _, key := range f.read {
		read[key]++
	}
	for round := range rounds {
		for _, who := range []string{"slow", "fast"} {
			s.same("times read", 1, read[fmt.Sprintf("%s/%d", who, round)])
		}
	}
}
