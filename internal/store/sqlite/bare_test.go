package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "modernc.org/sqlite"
)

// BenchmarkBare is what BenchmarkAppend is to be compared with: the same publishers and payload and the same driver, but one
// table without an index, and nothing else. A goroutine writes what waits in one transaction, which syncs as it commits.
func BenchmarkBare(b *testing.B) {
	payload := []byte(`{"text":"` + strings.Repeat("x", 500) + `"}`)
	for _, publishers := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("publishers=%d", publishers), func(b *testing.B) {
			db, err := sql.Open("sqlite", filepath.Join(b.TempDir(), "bare.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = db.Close() })
			db.SetMaxOpenConns(1)
			if _, err := db.Exec("CREATE TABLE log (seq INTEGER PRIMARY KEY, topic TEXT NOT NULL, body BLOB NOT NULL)"); err != nil {
				b.Fatal(err)
			}
			queue := make(chan bareAppend, publishers)
			var writer, all sync.WaitGroup
			writer.Go(func() { writeBare(b, db, queue) })
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			for p := range publishers {
				a := bareAppend{fmt.Sprintf("ev/crawl.finished/j%d", p), payload, make(chan error)}
				all.Go(func() {
					for left.Add(-1) >= 0 {
						queue <- a
						if err := <-a.done; err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acked/s")
			close(queue)
			writer.Wait()
		})
	}
}

type bareAppend struct {
	topic string
	body  []byte
	done  chan error
}

func writeBare(b *testing.B, db *sql.DB, queue <-chan bareAppend) {
	insert, err := db.Prepare("INSERT INTO log (topic, body) VALUES (?, ?)")
	if err != nil {
		b.Error(err)
		return
	}
	defer insert.Close()
	for first := range queue {
		group := []bareAppend{first}
		for len(queue) > 0 {
			group = append(group, <-queue)
		}
		err := func() error {
			tx, err := db.Begin()
			if err != nil {
				return err
			}
			defer tx.Rollback() // after a commit it does nothing
			in := tx.Stmt(insert)
			for _, a := range group {
				if _, err := in.Exec(a.topic, a.body); err != nil {
					return err
				}
			}
			return tx.Commit()
		}()
		for _, a := range group {
			a.done <- err
		}
	}
}
