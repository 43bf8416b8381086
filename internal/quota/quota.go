package quota

import (
	"sync"
	"time"
)

// maxKeys is how many buckets are kept. A bucket that is full again says nothing and is dropped first.
const maxKeys = 20_000

// A Quota has a token bucket for each key: so much at once, refilled steadily. The nil Quota allows everything. It is safe
// for concurrent use.
type Quota[K comparable] struct {
	burst float64
	every float64 // nanoseconds until there is one more

	mu      sync.Mutex
	buckets map[K]bucket
}

type bucket struct {
	tokens float64
	at     time.Time
}

// New gives a quota of so many each period, and of burst at once. With n of 0 or less it is nil, which allows everything; a
// burst less than 1 is 1.
func New[K comparable](n int64, period time.Duration, burst int64) *Quota[K] {
	if n <= 0 {
		return nil
	}
	return &Quota[K]{burst: max(float64(burst), 1), every: float64(period) / float64(n), buckets: map[K]bucket{}}
}

// Take takes n from the key's bucket, if it has them, or all of a full one when n is more than that. Otherwise it takes nothing
// and tells how long it will be until it has.
func (q *Quota[K]) Take(key K, n int64, now time.Time) (wait time.Duration, ok bool) {
	return q.take(key, float64(n), float64(n), now)
}

// Has reports whether the key's bucket has one, without taking it, and else how long it will be until it has.
func (q *Quota[K]) Has(key K, now time.Time) (wait time.Duration, ok bool) {
	return q.take(key, 1, 0, now)
}

func (q *Quota[K]) take(key K, needed, spent float64, now time.Time) (wait time.Duration, ok bool) {
	if q == nil {
		return 0, true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	b, known := q.buckets[key]
	if !known {
		b = bucket{q.burst, now}
	}
	b = q.refilled(b, now)
	if missing := min(needed, q.burst) - b.tokens; missing > 0 {
		return max(time.Duration(missing*q.every), time.Millisecond), false
	}
	b.tokens -= min(spent, q.burst)
	if !known {
		if spent == 0 {
			return 0, true // a full bucket need not be kept
		}
		q.makeRoom(now)
	}
	q.buckets[key] = b
	return 0, true
}

func (q *Quota[K]) refilled(b bucket, now time.Time) bucket {
	if passed := now.Sub(b.at); passed > 0 {
		b = bucket{min(q.burst, b.tokens+float64(passed)/q.every), now}
	}
	return b
}

// makeRoom drops buckets when there are too many: those that are full again, and then, since whoever makes so many keys must not
// make us keep more, a tenth of the others.
func (q *Quota[K]) makeRoom(now time.Time) {
	if len(q.buckets) < maxKeys {
		return
	}
	for key, b := range q.buckets {
		if q.refilled(b, now).tokens >= q.burst {
			delete(q.buckets, key)
		}
	}
	for key := range q.buckets {
		if len(q.buckets) <= maxKeys*9/10 {
			return
		}
		delete(q.buckets, key)
	}
}
