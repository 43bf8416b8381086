package sqlite

import (
	"maps"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/wake"
)

// A tail is the part of the topic index that is only in memory: where the latest occurrences of each topic are in the log.
// The writer adds to it before it commits, so a reader always finds what its snapshot holds, and disregards what lies
// beyond. Safe for concurrent use.
type tail struct {
	mu     sync.RWMutex
	places map[topicKey][]wake.Seq // rising
	count  int
	low    wake.Seq  // up to here the places are in the database's index
	since  time.Time // when the first of the places came; zero when there are none
}

func newTail(low wake.Seq) *tail {
	return &tail{places: map[topicKey][]wake.Seq{}, low: low}
}

// add puts the place on each of the topics, once.
func (t *tail) add(app string, topics []string, seq wake.Seq) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, topic := range topics {
		key := topicKey{app, topic}
		on := t.places[key]
		if len(on) > 0 && on[len(on)-1] == seq {
			continue
		}
		t.places[key] = append(on, seq)
		t.count++
	}
	if t.since.IsZero() {
		t.since = time.Now()
	}
}

// on gives the topic's places after one and up to another, at most limit. It reports false when the tail no longer reaches
// back to what a reader's snapshot has indexed: that reader must look into the log itself.
func (t *tail) on(key topicKey, indexed, after, through wake.Seq, limit int) ([]wake.Seq, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if indexed < t.low {
		return nil, false
	}
	on := between(t.places[key], max(after, indexed), through)
	return slices.Clone(on[:min(len(on), limit)]), true
}

// cutAfter forgets places after the given one: those of a transaction that was rolled back.
func (t *tail) cutAfter(head wake.Seq) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trim(t.low, head)
}

// cutThrough forgets places up to the given one: the database's index has them.
func (t *tail) cutThrough(indexed wake.Seq) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.low = indexed
	t.trim(indexed, math.MaxInt64)
	t.since = time.Time{}
	if t.count > 0 {
		t.since = time.Now()
	}
}

// trim keeps the places after one and up to another. The caller holds the lock.
func (t *tail) trim(after, through wake.Seq) {
	for key, on := range t.places {
		kept := slices.Clone(between(on, after, through))
		t.count -= len(on) - len(kept)
		if len(kept) == 0 {
			delete(t.places, key)
			continue
		}
		t.places[key] = kept
	}
}

// between gives the part of rising places after one and up to another.
func between(places []wake.Seq, after, through wake.Seq) []wake.Seq {
	from := sort.Search(len(places), func(i int) bool { return places[i] > after })
	to := sort.Search(len(places), func(i int) bool { return places[i] > through })
	return places[from:max(from, to)]
}

// ripe reports whether the places should be written to the database: there are many, or they have waited long.
func (t *tail) ripe(now time.Time, many int, long time.Duration) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.count >= many || t.count > 0 && now.Sub(t.since) >= long
}

// runs gives the places after the given one as runs, in the order of the database's index.
func (t *tail) runs(after wake.Seq) []run {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var runs []run
	for _, key := range slices.SortedFunc(maps.Keys(t.places), compareTopics) {
		for places := range slices.Chunk(between(t.places[key], after, math.MaxInt64), runLength) {
			runs = append(runs, run{key, places})
		}
	}
	return runs
}
