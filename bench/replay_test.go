package bench

import (
	"encoding/json"
	"fmt"
	"path"
	"runtime"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// BenchmarkReplay subscribes to a topic on which a million occurrences lie, with a replay that brings them all, and reads
// them to the end: each once and in order. heap-MB is the most that was in use.
func BenchmarkReplay(b *testing.B) {
	const occurrences, page = 1_000_000, 100
	database := openStore(b)
	defer database.Close()
	c, err := core.New(b.Context(), core.Options{Store: database, Master: credential.NewMaster([32]byte{1}), PublicURL: "http://core.test"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	app, err := c.CreateApp(b.Context(), storedApp, "")
	if err != nil {
		b.Fatal(err)
	}
	at := time.Now()
	err = inSteps(b.Context(), database, occurrences, func(tx store.Tx, i int) error {
		_, err := tx.Append(wake.Occurrence{App: storedApp, Kind: wake.KindEvent, Topics: []string{"news"}, Text: "News",
			Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)), At: at})
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	for run := 0; b.Loop(); run++ {
		call := wake.Call{Client: "claude-code", User: fmt.Sprintf("user-%d", run)}
		done, err := c.SubscribeTopic(b.Context(), app, call, "news", core.TopicOptions{Replay: time.Hour})
		if err != nil {
			b.Fatal(err)
		}
		in, err := c.OpenStream(b.Context(), path.Base(streamAddress.FindStringSubmatch(done.Addition.Text)[1]))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(readAll(b, in, occurrences, page), "heap-MB")
		in.Close()
	}
	b.ReportMetric(float64(occurrences*b.N)/b.Elapsed().Seconds(), "occurrences/s")
}

// readAll reads that many messages by the page, each once and in order, and returns the most megabytes that were in use.
func readAll(b *testing.B, in *core.Inbox, want, page int) (most float64) {
	b.Helper()
	read, last := 0, wake.Seq(0)
	for read < want {
		messages, err := in.Read(b.Context(), page)
		if err != nil {
			b.Fatal(err)
		}
		var receipt core.Receipt
		for _, m := range messages {
			if m.Seq <= last {
				b.Fatalf("place %d after %d", m.Seq, last)
			}
			last = m.Seq
		}
		receipt.Add(messages...)
		if read += len(messages); read%(want/20) < page {
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			most = max(most, float64(memory.HeapInuse)/(1<<20))
			if err := in.Settle(b.Context(), receipt); err != nil {
				b.Fatal(err)
			}
		}
	}
	return most
}
