package appapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rouse-dev/rouse/internal/core"
)

// BenchmarkStreams emits to a topic with 5,000 native streams of one connection, and waits until all are told.
func BenchmarkStreams(b *testing.B) {
	const streams = 5000
	l := setup(b, func(o *core.Options) { o.Limits.UserStreams = 0 })
	url, _ := l.serve()
	app := l.connect(url, l.app)
	go func() {
		for i := range streams {
			app.open(fmt.Sprint(i+1), "")
		}
	}()
	for range streams {
		app.frame()
	}
	for b.Loop() {
		l.site("s", "1")
		for told := 0; told < streams; {
			_, text, err := app.conn.Read(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if strings.Contains(string(text), "events/event") {
				told++
			}
		}
	}
}

// BenchmarkPoll10000 polls 10,000 occurrences in one request.
func BenchmarkPoll10000(b *testing.B) {
	const events = 10_000
	l := setup(b)
	ask := func(cursor string) []byte {
		return l.app.send(b, "POST", "/events/poll", `{"call":{},"params":{"name":"site.updated","arguments":{"site":"s"},"maxEvents":10000,"cursor":`+cursor+`}}`).body
	}
	var start struct{ Result core.Polled }
	if err := json.Unmarshal(ask("null"), &start); err != nil {
		b.Fatal(err)
	}
	batch := make([]core.Emit, 1000)
	for i := range batch {
		batch[i] = core.Emit{Name: "site.updated", Arguments: json.RawMessage(`{"site":"s"}`), Payload: fmt.Appendf(nil, `{"pages":%d}`, i), Text: "the site s was updated"}
	}
	for range events / len(batch) {
		if _, err := l.Core.EmitBatch(b.Context(), l.App, batch); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		got := ask(quote(start.Result.Cursor))
		if n := strings.Count(string(got), `"eventId"`); n != events {
			b.Fatalf("%d events", n)
		}
		b.SetBytes(int64(len(got)))
	}
}
