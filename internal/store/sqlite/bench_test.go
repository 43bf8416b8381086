package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
	"github.com/rouse-dev/rouse/internal/wake"
)

// BenchmarkAppend is how many emits a second are acknowledged, each after fsync: publishers that wait for their answer
// before they send the next, each on its own topic, with 512 bytes of payload. BenchmarkFsync, in the same run, is what the
// disk allows.
func BenchmarkAppend(b *testing.B) {
	payload := []byte(`{"text":"` + strings.Repeat("x", 500) + `"}`)
	for _, publishers := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("publishers=%d", publishers), func(b *testing.B) {
			s := openBench(b)
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			b.ResetTimer()
			for p := range publishers {
				topics := []string{fmt.Sprintf("ev/crawl.finished/j%d", p)}
				all.Go(func() {
					for left.Add(-1) >= 0 {
						err := s.Update(context.Background(), func(t store.Tx) error {
							if _, err := t.ManifestVersion("bench"); err != nil {
								return err
							}
							subscribers, err := t.SubscriptionsTo("bench", topics)
							if err != nil {
								return err
							}
							if _, err := t.WebhooksTo("bench", topics); err != nil {
								return err
							}
							_, err = t.Append(wake.Occurrence{
								App: "bench", Kind: wake.KindEvent, Event: "crawl.finished", Topics: topics,
								Arguments: []byte(`{"job":"j1"}`), Text: "The crawl is finished.", Data: payload,
								Matched: len(subscribers), At: time.Now(),
							})
							return err
						})
						if err != nil {
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

// BenchmarkFsync writes what a commit of some hundred emits writes, and waits for the disk.
func BenchmarkFsync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "fsync"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 72<<10)
	for range 512 {
		if _, err := f.Write(block); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for i := range b.N {
		if _, err := f.WriteAt(block, int64(i%512*len(block))); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

func openBench(b *testing.B) store.Store {
	b.Helper()
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	err = s.Update(b.Context(), func(t store.Tx) error { return t.CreateApp(wake.App{ID: "bench", CreatedAt: time.Now()}) })
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkScrub scrubs a database of some 60 MB, of which a little was removed.
func BenchmarkScrub(b *testing.B) {
	s := openBench(b)
	data := []byte(`{"text":"` + strings.Repeat("x", 500) + `"}`)
	for range 100 {
		err := s.Update(b.Context(), func(t store.Tx) error {
			for i := range 1000 {
				o := wake.Occurrence{App: "bench", Topics: []string{fmt.Sprint("topic/", i)}, Data: data, At: time.Now()}
				if _, err := t.Append(o); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		err := s.Update(b.Context(), func(t store.Tx) error {
			_, err := t.Prune(time.Now(), 10)
			return err
		})
		if err := errors.Join(err, s.Scrub(b.Context())); err != nil {
			b.Fatal(err)
		}
	}
}
