package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/wake"
)

// BenchmarkPoll10000 polls 10,000 occurrences at once.
func BenchmarkPoll10000(b *testing.B) {
	const events = 10_000
	bench := coretest.New(b)
	start := pollOnce(b, bench, core.Poll{}).Cursor
	emitSites(b, bench, events)
	for b.Loop() {
		polled := pollOnce(b, bench, core.Poll{Cursor: &start, MaxEvents: events})
		text, err := json.Marshal(polled)
		if err != nil || len(polled.Events) != events || polled.HasMore {
			b.Fatalf("%d of them, %v", len(polled.Events), err)
		}
		b.SetBytes(int64(len(text)))
	}
}

func pollOnce(b *testing.B, bench *coretest.Bench, p core.Poll) core.Polled {
	b.Helper()
	polled, err := bench.Core.Poll(b.Context(), bench.App, siteRequest(wake.Call{}), p)
	if err != nil {
		b.Fatal(err)
	}
	return polled
}

// emitSites emits so many times that the site s was updated.
func emitSites(b *testing.B, bench *coretest.Bench, events int) {
	b.Helper()
	for at := 0; at < events; at += 1000 {
		batch := make([]core.Emit, min(1000, events-at))
		for i := range batch {
			batch[i] = core.Emit{Name: "site.updated", Arguments: json.RawMessage(`{"site":"s"}`),
				Payload: fmt.Appendf(nil, `{"pages":%d}`, at+i), Text: "the site s was updated"}
		}
		if _, err := bench.Core.EmitBatch(b.Context(), bench.App, batch); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStreams emits to a topic with 5,000 native streams on one connection, all of which are told. It says what a stream
// takes in memory, too.
func BenchmarkStreams(b *testing.B) {
	const streams = 5000
	bench := coretest.New(b, func(o *core.Options) { o.Limits.UserStreams = 0 })
	line, err := bench.Core.NativeStreams(bench.App)
	if err != nil {
		b.Fatal(err)
	}
	defer line.Close()
	before := heap()
	for i := range int64(streams) {
		if err := line.Open(b.Context(), i+1, siteRequest(native), core.Since{}); err != nil {
			b.Fatal(err)
		}
	}
	next(b, line, streams) // active
	size := float64(heap()-before) / streams
	for b.Loop() {
		emitSites(b, bench, 1)
		next(b, line, streams)
	}
	b.ReportMetric(size, "B/stream")
}

func next(b *testing.B, line *core.NativeStreams, notices int) {
	b.Helper()
	for told := 0; told < notices; {
		n, err := line.Next(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if n.Kind != core.NoticeHeartbeat {
			told++
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
