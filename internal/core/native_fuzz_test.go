package core_test

import (
	"encoding/json"
	"testing"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/wake"
)

// FuzzCursor polls and opens a stream with whatever cursor. Both begin at one place, say truncated unless the cursor is one that
// was given out, and go on from there with nothing truncated.
func FuzzCursor(f *testing.F) {
	b := coretest.New(f)
	poll := func(t testing.TB, cursor *string) core.Polled {
		t.Helper()
		polled, err := b.Core.Poll(t.Context(), b.App, siteRequest(wake.Call{}), core.Poll{Cursor: cursor})
		if err != nil {
			t.Fatalf("%v: %v", cursor, err)
		}
		return polled
	}
	given := map[string]int{poll(f, nil).Cursor: 3} // how many follow
	for left := 2; left >= 0; left-- {
		if _, err := b.Core.Emit(f.Context(), b.App, core.Emit{Name: "site.updated", Arguments: json.RawMessage(`{"site":"s"}`),
			Payload: json.RawMessage(`{"pages":1}`), Text: "changed"}); err != nil {
			f.Fatal(err)
		}
		given[poll(f, nil).Cursor] = left
	}
	for cursor := range given {
		for _, seed := range []string{cursor, cursor + "0", "0" + cursor, cursor[:len(cursor)-1], cursor[:8] + "0" + cursor[8:]} {
			f.Add(seed)
		}
	}
	for _, seed := range []string{"", "c1", "c1..", "c1.aaaa.-1", "c1.aaaa.zzzzzzzzzzzzzzzz", "\x00", "c1.ＡＡＡＡ.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		polled := poll(t, &cursor)
		left, known := given[cursor]
		if !known && len(polled.Events) > 0 && polled.Truncated || known && (polled.Truncated || len(polled.Events) != left) {
			t.Errorf("%q: %+v", cursor, polled)
		}
		if again := poll(t, &polled.Cursor); again.Truncated || len(again.Events) > 0 {
			t.Errorf("%q leads to %q: %+v", cursor, polled.Cursor, again)
		}
		line, err := b.Core.NativeStreams(b.App)
		if err != nil {
			t.Fatal(err)
		}
		defer line.Close()
		if err := line.Open(t.Context(), 1, siteRequest(wake.Call{}), core.Since{Cursor: &cursor}); err != nil {
			t.Fatalf("%q: %v", cursor, err)
		}
		active, err := line.Next(t.Context())
		if err != nil || active.Kind != core.NoticeActive || active.Truncated != polled.Truncated {
			t.Errorf("%q: the stream begins with %+v, %v, the poll with %+v", cursor, active, err, polled)
		}
	})
}
