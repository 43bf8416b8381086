package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
	"github.com/rouse-dev/rouse/internal/wake"
)

// BenchmarkAppend is how many emits a second are acknowledged: publishers that wait for their answer before they send the next,
// each on its own topic, with 512 bytes of payload, without and with an id of their own. It is the same as that of SQLite.
func BenchmarkAppend(b *testing.B) {
	payload := []byte(`{"text":"` + strings.Repeat("x", 500) + `"}`)
	for _, ids := range []bool{false, true} {
		for _, publishers := range []int{1, 16, 128} {
			b.Run(fmt.Sprintf("ids=%t/publishers=%d", ids, publishers), func(b *testing.B) {
				s := openBench(b)
				var left atomic.Int64
				left.Store(int64(b.N))
				var all sync.WaitGroup
				b.ResetTimer()
				for p := range publishers {
					all.Go(func() {
						o := wake.Occurrence{
							App: "bench", Kind: wake.KindEvent, Event: "crawl.finished", Topics: []string{fmt.Sprintf("ev/crawl.finished/j%d", p)},
							Arguments: []byte(`{"job":"j1"}`), Text: "The crawl is finished.", Data: payload,
						}
						for n := left.Add(-1); n >= 0; n = left.Add(-1) {
							o.At = time.Now()
							if ids {
								o.Key = fmt.Sprint(n)
							}
							if err := s.Update(context.Background(), func(t store.Tx) error { return emit(t, o) }); err != nil {
								b.Error(err)
							}
						}
					})
				}
				all.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acked/s")
			})
		}
	}
}

// emit is what the core does for an emit.
func emit(t store.Tx, o wake.Occurrence) error {
	if _, err := t.ManifestVersion(o.App); err != nil {
		return err
	}
	subscribers, err := t.SubscriptionsTo(o.App, o.Topics)
	if err != nil {
		return err
	}
	if _, err := t.WebhooksTo(o.App, o.Topics); err != nil {
		return err
	}
	o.Matched = len(subscribers)
	_, err = t.Append(o)
	return err
}

func openBench(b *testing.B) store.Store {
	b.Helper()
	s := open(b, pgtest.Database(b))
	err := s.Update(b.Context(), func(t store.Tx) error { return t.CreateApp(wake.App{ID: "bench", CreatedAt: time.Now()}) })
	if err != nil {
		b.Fatal(err)
	}
	return s
}
