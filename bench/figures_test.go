package bench

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// report gives the median and the 99th percentile of what was measured.
func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	at := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))].Microseconds()) / 1000
	}
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
}

// reportRate gives how many emits a second were done, and how much processor time each took: of the core, of the load, and of
// the collection of both's garbage. Other programs on the machine change the first figure far more than the second.
func reportRate(b *testing.B, emits int, before time.Duration) {
	b.ReportMetric(float64(emits)/b.Elapsed().Seconds(), "emits/s")
	b.ReportMetric(float64((cpu()-before).Nanoseconds())/1000/float64(emits), "cpu-µs/emit")
}

// atRate calls f for each of n at a fixed rate, whether or not earlier calls have returned, and returns when all have. due is
// when a call was to begin: whoever measures from then on leaves out nothing that waited.
func atRate(n, perSecond int, f func(i int, due time.Time)) {
	var all sync.WaitGroup
	begun := time.Now()
	for i := range n {
		due := begun.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
		waitUntil(due)
		all.Go(func() { f(i, due) })
	}
	all.Wait()
}

// coarse is how late a timer may be on a machine at rest, where the runtime sleeps for whole milliseconds.
const coarse = time.Millisecond

// waitUntil returns at a time, by a timer up to shortly before and by the clock from then on.
func waitUntil(due time.Time) {
	if early := time.Until(due) - coarse; early > 0 {
		timer := time.NewTimer(early)
		<-timer.C
	}
	for time.Now().Before(due) {
		runtime.Gosched()
	}
}
