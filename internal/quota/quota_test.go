package quota_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/quota"
)

var start = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

func TestTake(t *testing.T) {
	t.Parallel()
	type take struct {
		after time.Duration // since the start
		key   string
		n     int64
		wait  time.Duration
	}
	tests := map[string]struct {
		quota *quota.Quota[string]
		takes []take
	}{
		"a burst, then one each interval": {quota.New[string](10, time.Second, 2), []take{
			{0, "a", 1, 0}, {0, "a", 1, 0}, {0, "a", 1, 100 * time.Millisecond},
			{100 * time.Millisecond, "a", 1, 0}, {100 * time.Millisecond, "a", 1, 100 * time.Millisecond},
		}},
		"a full bucket gets no fuller": {quota.New[string](10, time.Second, 2), []take{
			{time.Hour, "a", 2, 0}, {2 * time.Hour, "a", 2, 0}, {2 * time.Hour, "a", 1, 100 * time.Millisecond},
		}},
		"keys do not share": {quota.New[string](1, time.Second, 1), []take{
			{0, "a", 1, 0}, {0, "b", 1, 0}, {0, "a", 1, time.Second},
		}},
		"many at once": {quota.New[string](1000, time.Second, 1000), []take{
			{0, "a", 600, 0}, {0, "a", 600, 200 * time.Millisecond}, {200 * time.Millisecond, "a", 600, 0},
		}},
		"more than there ever are takes a full bucket": {quota.New[string](10, time.Second, 10), []take{
			{0, "a", 50, 0}, {0, "a", 1, 100 * time.Millisecond}, {500 * time.Millisecond, "a", 50, 500 * time.Millisecond},
		}},
		"a clock that goes back gives nothing": {quota.New[string](1, time.Second, 1), []take{
			{time.Minute, "a", 1, 0}, {0, "a", 1, time.Second}, {time.Minute, "a", 1, time.Second},
		}},
		"no burst is one":    {quota.New[string](1, time.Second, 0), []take{{0, "a", 1, 0}, {0, "a", 1, time.Second}}},
		"none is no limit":   {quota.New[string](0, time.Second, 0), []take{{0, "a", 1 << 40, 0}, {0, "a", 1 << 40, 0}}},
		"less than that too": {quota.New[string](-1, time.Second, 5), []take{{0, "a", 6, 0}, {0, "a", 6, 0}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, take := range test.takes {
				wait, ok := test.quota.Take(take.key, take.n, start.Add(take.after))
				if wait.Round(time.Millisecond) != take.wait || ok != (take.wait == 0) {
					t.Errorf("take %d: wait %v, %v; want %v", i, wait, ok, take.wait)
				}
			}
		})
	}
}

func TestHasTakesNothing(t *testing.T) {
	t.Parallel()
	q := quota.New[string](1, time.Second, 1)
	for range 3 {
		if _, ok := q.Has("a", start); !ok {
			t.Fatal("asking took it")
		}
	}
	q.Take("a", 1, start)
	if wait, ok := q.Has("a", start); ok || wait != time.Second {
		t.Errorf("%v, %v", wait, ok)
	}
}

func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	q := quota.New[int](1, time.Second, 2)
	for key := range 100_000 {
		if _, ok := q.Take(key, 2, start); !ok {
			t.Fatal("a new key is refused")
		}
		if size := q.Len(); size > quota.MaxKeys {
			t.Fatalf("%d buckets", size)
		}
	}
	// Those that are full again are the first to go: the one in use stays.
	q = quota.New[int](1, time.Second, 2)
	for key := range quota.MaxKeys {
		q.Take(key, 1, start)
	}
	later := start.Add(time.Minute)
	q.Take(1, 2, later)
	q.Take(-1, 1, later)
	if _, ok := q.Take(1, 1, later); ok || q.Len() != 2 {
		t.Errorf("a bucket in use was dropped, of %d", q.Len())
	}
}

func TestTakesAtOnce(t *testing.T) {
	t.Parallel()
	q := quota.New[string](1, time.Hour, 100)
	var taken atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if _, ok := q.Take("a", 1, start); ok {
					taken.Add(1)
				}
			}
		})
	}
	all.Wait()
	if taken.Load() != 100 {
		t.Errorf("%d taken of 100", taken.Load())
	}
}

func BenchmarkTake(b *testing.B) {
	q := quota.New[string](1<<40, time.Second, 1<<40)
	for b.Loop() {
		q.Take("crawler", 1, start)
	}
}
