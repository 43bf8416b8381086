package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A line is a connection with native streams.
type line struct {
	*bench
	*core.NativeStreams
}

func (b *bench) line() *line {
	b.Helper()
	streams, err := b.core.NativeStreams(b.app)
	if err != nil {
		b.Fatal(err)
	}
	l := &line{b, streams}
	b.Cleanup(l.Close)
	return l
}

// open opens a stream of ada's to what happens to the site s, since a cursor or from now on.
func (l *line) open(id int64, cursor ...string) {
	l.Helper()
	var since core.Since
	if len(cursor) > 0 {
		since.Cursor = &cursor[0]
	}
	if err := l.Open(l.Context(), id, siteRequest(native), since); err != nil {
		l.Fatal(err)
	}
}

var kinds = map[core.NoticeKind]string{core.NoticeActive: "active", core.NoticeEvent: "event", core.NoticeHeartbeat: "heartbeat",
	core.NoticeError: "error", core.NoticeTerminated: "terminated", core.NoticeEnd: "end"}

// next is the next notice, within a time that is long on synctest's clock.
func (l *line) next(within time.Duration) (core.NativeNotice, bool) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), within)
	defer cancel()
	n, err := l.Next(ctx)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		l.Fatal(err)
	}
	return n, err == nil
}

// said is what is told within a time, in short.
func (l *line) said(within time.Duration) (list []string) {
	l.Helper()
	for end := time.Now().Add(within); ; {
		n, ok := l.next(time.Until(end))
		if !ok {
			return list
		}
		text := fmt.Sprintf("%d %s", n.Stream, kinds[n.Kind])
		switch {
		case n.Kind == core.NoticeActive && n.Truncated:
			text += " truncated"
		case n.Kind == core.NoticeEvent:
			var o struct{ Data struct{ Pages int } }
			if err := json.Unmarshal(n.Event, &o); err != nil {
				l.Fatal(err)
			}
			text += fmt.Sprintf(" %d", o.Data.Pages)
		case n.Kind == core.NoticeTerminated:
			text += " " + string(refusal.Of(n.Err).Code)
		}
		list = append(list, text)
	}
}

// says holds that this, and nothing else, is told within a time.
func (l *line) says(within time.Duration, want ...string) {
	l.Helper()
	if diff := cmp.Diff(want, l.said(within)); diff != "" {
		l.Error(diff)
	}
}

// inBubble runs a test of a line on synctest's clock.
func inBubble(t *testing.T, f func(t *testing.T, l *line), change ...func(*core.Options)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, setup(t, change...).line()) })
}

func TestAStreamTellsWhatHappens(t *testing.T) {
	inBubble(t, func(t *testing.T, l *line) {
		l.site("s", "1") // before
		l.open(7)
		l.says(time.Second, "7 active")
		l.site("s", "2")
		l.site("other", "3")
		l.says(time.Second, "7 event 2")
		l.CloseStream(7)
		l.site("s", "4")
		l.says(time.Hour)
		if l.Len() != 0 {
			t.Errorf("%d streams", l.Len())
		}
	})
}

func TestAStreamBeats(t *testing.T) {
	inBubble(t, func(t *testing.T, l *line) {
		l.open(1)
		time.Sleep(5 * time.Second)
		l.open(2)
		l.says(24*time.Second, "1 active", "2 active", "1 heartbeat")
		l.says(23*time.Second, "2 heartbeat", "1 heartbeat")
		// A heartbeat's cursor passes over what the stream does not want.
		l.site("other", "1")
		l.says(time.Second)
		before := l.poll(nil).Cursor
		n, ok := l.next(time.Minute)
		if !ok || n.Kind != core.NoticeHeartbeat || n.Cursor != before {
			t.Errorf("%+v, want the cursor %s", n, before)
		}
	})
}

// Each event has a cursor from which the rest comes.
func TestAStreamGoesOnFromAnyCursor(t *testing.T) {
	inBubble(t, func(t *testing.T, l *line) {
		l.open(1)
		begin, _ := l.next(time.Second)
		cursors := []string{begin.Cursor}
		var want []string
		for i := range 100 {
			l.site("s", fmt.Sprint(i))
			want = append(want, fmt.Sprintf("%d event %d", 0, i))
		}
		for range 100 {
			n, ok := l.next(time.Second)
			var o core.OccurrenceWire
			if !ok || json.Unmarshal(n.Event, &o) != nil {
				t.Fatalf("%+v", n)
			}
			cursors = append(cursors, o.Cursor)
		}
		l.CloseStream(1)
		for i, cursor := range cursors {
			id := int64(i + 2)
			l.open(id, cursor)
			got := l.said(time.Second)
			expected := []string{fmt.Sprintf("%d active", id)}
			for _, one := range want[i:] {
				expected = append(expected, fmt.Sprint(id)+one[1:])
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("from %s: %s", cursor, diff)
			}
			l.CloseStream(id)
		}
	})
}

func TestWhereAStreamBegins(t *testing.T) {
	inBubble(t, func(t *testing.T, l *line) {
		start := l.poll(nil).Cursor
		l.site("s", "1")
		time.Sleep(time.Minute)
		l.site("other", "2")
		time.Sleep(time.Minute)
		l.site("s", "3")
		for name, c := range map[string]struct {
			since core.Since
			want  []string
		}{
			"from now on":              {core.Since{}, []string{"1 active"}},
			"age without a cursor":     {core.Since{MaxAge: time.Second}, []string{"1 active"}},
			"from the start":           {core.Since{Cursor: &start}, []string{"1 active", "1 event 1", "1 event 3"}},
			"old enough":               {core.Since{Cursor: &start, MaxAge: time.Hour}, []string{"1 active", "1 event 1", "1 event 3"}},
			"too old":                  {core.Since{Cursor: &start, MaxAge: 90 * time.Second}, []string{"1 active truncated", "1 event 3"}},
			"garbage":                  {core.Since{Cursor: ptr("h_1")}, []string{"1 active truncated"}},
			"empty":                    {core.Since{Cursor: ptr("")}, []string{"1 active truncated"}},
			"of the future":            {core.Since{Cursor: ptr(strings.TrimSuffix(start, "0") + "zzz")}, []string{"1 active truncated"}},
			"of another log":           {core.Since{Cursor: ptr("c1.aaaa.0")}, []string{"1 active truncated"}},
			"what is old is another's": {core.Since{Cursor: ptr(l.cursorAfter(start, 1)), MaxAge: 30 * time.Second}, []string{"1 active", "1 event 3"}},
		} {
			if err := l.Open(t.Context(), 1, siteRequest(native), c.since); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, l.said(time.Second)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			l.CloseStream(1)
		}
	})
}

func ptr(text string) *string { return &text }

// cursorAfter is the cursor after so many events of the site s.
func (b *bench) cursorAfter(start string, events int) string {
	b.Helper()
	polled, err := b.core.Poll(b.Context(), b.app, siteRequest(native), core.Poll{Cursor: &start, MaxEvents: events})
	if err != nil || len(polled.Events) != events {
		b.Fatalf("%+v, %v", polled, err)
	}
	return polled.Cursor
}

func TestWhoMayOpenAStream(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.line()
	voucher := voucherIn(t, b.subscribe(chatGPT, "j1").Addition.Text)
	no := siteRequest(native)
	no.Refused = true
	long := siteRequest(native)
	long.Arguments = json.RawMessage(`{"site":"` + strings.Repeat("s", 16<<10) + `"}`)
	for name, test := range map[string]struct {
		ask  core.Native
		code refusal.Code // empty: allowed
	}{
		"public, nobody":  {siteRequest(wake.Call{}), ""},
		"public, refused": {no, refusal.Forbidden},
		"tools only":      {core.Native{Call: native, Name: "crawl.finished", Arguments: args("j1")}, refusal.Forbidden},
		"a voucher":       {withVoucher("j1", voucher), ""},
		"another voucher": {withVoucher("j2", voucher), refusal.Forbidden},
		"unknown event":   {core.Native{Call: native, Name: "no.such"}, refusal.UnknownEvent},
		"bad arguments":   {core.Native{Call: native, Name: "site.updated"}, refusal.BadArguments},
		"long arguments":  {long, refusal.BadArguments},
		"a long user":     {siteRequest(wake.Call{User: strings.Repeat("u", 257)}), refusal.BadRequest},
	} {
		err := l.Open(t.Context(), 1, test.ask, core.Since{})
		if test.code == "" && err != nil || test.code != "" && !refusal.Is(err, test.code) {
			t.Errorf("%s: %v, want %q", name, err, test.code)
		}
		l.CloseStream(1)
	}
	if l.Len() != 0 {
		t.Errorf("%d streams", l.Len())
	}
}

func (b *bench) put(manifest string) {
	b.Helper()
	if _, err := b.core.PutManifest(b.Context(), b.app, json.RawMessage(manifest)); err != nil {
		b.Fatal(err)
	}
}

// What a stream's client is told when the manifest changes.
func TestAManifestEndsStreams(t *testing.T) {
	t.Parallel()
	site := func(more string) string {
		return strings.Replace(manifest, `"topic":"ev/site.updated/{site}","public":true`, `"topic":"ev/site.updated/{site}"`+more, 1)
	}
	for name, c := range map[string]struct {
		next   string
		code   refusal.Code // empty: it goes on
		detail map[string]any
	}{
		"the same":         {manifest, "", nil},
		"removed":          {`{"events":[]}`, refusal.UnknownEvent, nil},
		"now tools only":   {site(`,"public":false`), refusal.Forbidden, nil},
		"now personal":     {site(`,"public":true,"personal":true`), refusal.Unsupported, map[string]any{"feature": "inputSchema", "reason": "schema_changed"}},
		"no push any more": {site(`,"public":true,"delivery":["poll"]`), refusal.Unsupported, map[string]any{"feature": "deliveryMode", "value": "push"}},
		"other payload": {strings.Replace(manifest, `"payload":{"type":"object","properties":{"pages":{"type":"integer"}},"required":["pages"]}},
 {"name":"your.turn"`, `"payload":{"type":"object","properties":{"pages":{"type":"string"}},"required":["pages"]}},
 {"name":"your.turn"`, 1), refusal.Unsupported, map[string]any{"feature": "payloadSchema", "reason": "schema_changed"}},
		"other arguments": {strings.Replace(manifest, `{"site":{"type":"string"}}`, `{"site":{"type":"string","enum":["t"]}}`, 1),
			refusal.Unsupported, map[string]any{"feature": "inputSchema", "reason": "schema_changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *line) {
				l.open(1)
				l.says(time.Second, "1 active")
				l.put(c.next)
				if c.code == "" {
					l.site("s", "1")
					l.says(time.Second, "1 event 1")
					return
				}
				n, _ := l.next(time.Second)
				if no := refusal.Of(n.Err); n.Kind != core.NoticeTerminated || no.Code != c.code || c.detail != nil && !cmp.Equal(c.detail, no.Detail) {
					t.Errorf("%+v: %+v", n, no)
				}
				l.says(time.Hour, "1 end")
				if l.Len() != 0 {
					t.Error("the stream is there still")
				}
			})
		})
	}
}

// A voucher is good for as long as its subscription lives, and so is its stream.
func TestAVouchersStreamEndsWithItsSubscription(t *testing.T) {
	inBubble(t, func(t *testing.T, l *line) {
		done := l.subscribe(chatGPT, "j1")
		if err := l.Open(t.Context(), 1, withVoucher("j1", voucherIn(t, done.Addition.Text)), core.Since{}); err != nil {
			t.Fatal(err)
		}
		l.emit("j1", "1")
		l.says(time.Minute, "1 active", "1 event 1", "1 heartbeat", "1 heartbeat")
		if _, err := l.core.EndSubscription(t.Context(), l.app, done.Subscription.ID); err != nil {
			t.Fatal(err)
		}
		l.says(time.Minute, "1 terminated forbidden", "1 end")
	})
}

func TestTheAppEndsAStream(t *testing.T) {
	inBubble(t, func(t *testing.T, l *line) {
		l.open(1)
		l.open(2)
		l.says(time.Second, "1 active", "2 active")
		l.site("s", "1")
		l.Refuse(1)
		l.Refuse(9)
		l.says(time.Second, "1 terminated forbidden", "1 end", "2 event 1")
		l.open(3)
		l.Refuse(3) // before its client heard anything
		l.says(time.Second, "3 active", "3 terminated forbidden", "3 end")
	})
}

func TestForgettingAUserEndsStreams(t *testing.T) {
	inBubble(t, func(t *testing.T, l *line) {
		l.open(1)
		if err := l.Open(t.Context(), 2, siteRequest(wake.Call{User: "bob"}), core.Since{}); err != nil {
			t.Fatal(err)
		}
		l.says(time.Second, "1 active", "2 active")
		if _, err := l.core.ForgetUser(t.Context(), l.app, "ada"); err != nil {
			t.Fatal(err)
		}
		l.says(time.Second, "1 terminated forbidden", "1 end")
		l.open(3) // ada is there again
		l.says(time.Minute, "3 active", "2 heartbeat", "3 heartbeat", "2 heartbeat", "3 heartbeat")
	})
}

// A stream that does not get on is told what retention removed meanwhile.
func TestRetentionOvertakesAStream(t *testing.T) {
	inBubble(t, func(t *testing.T, l *line) {
		l.open(1)
		l.says(time.Second, "1 active")
		for i := range 40 { // more than a page
			l.site("s", fmt.Sprint(i))
		}
		if n, ok := l.next(time.Second); !ok || n.Kind != core.NoticeEvent {
			t.Fatalf("%+v", n)
		}
		time.Sleep(2 * time.Hour) // nobody asks for more
		l.site("s", "100")
		if err := l.core.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := l.said(time.Second)
		want := []string{"1 active truncated", "1 event 100", "1 heartbeat"}
		if len(got) < 3 || !cmp.Equal(want, got[len(got)-3:]) {
			t.Errorf("%q", got)
		}
	}, func(o *core.Options) { o.Retention = time.Hour })
}

// A failing store fails on demand.
type failing struct {
	store.Store
	now   atomic.Bool
	views atomic.Int64
}

func (s *failing) View(ctx context.Context, f func(store.Reader) error) error {
	s.views.Add(1)
	if s.now.Load() {
		return store.ErrUnavailable
	}
	return s.Store.View(ctx, f)
}

func TestAStreamOutlivesTheStoresTrouble(t *testing.T) {
	var s failing
	inBubble(t, func(t *testing.T, l *line) {
		l.open(1)
		l.open(2)
		l.says(time.Second, "1 active", "2 active")
		l.site("s", "1")
		s.now.Store(true)
		got := l.said(time.Minute)
		slices.Sort(got)
		if diff := cmp.Diff([]string{"1 error", "1 heartbeat", "1 heartbeat", "2 error", "2 heartbeat", "2 heartbeat"}, got); diff != "" {
			t.Error(diff)
		}
		s.now.Store(false)
		got = slices.DeleteFunc(l.said(16*time.Second), func(said string) bool { return strings.HasSuffix(said, "heartbeat") })
		slices.Sort(got)
		if diff := cmp.Diff([]string{"1 event 1", "2 event 1"}, got); diff != "" {
			t.Error(diff)
		}
	}, func(o *core.Options) { s.Store, o.Store = o.Store, &s })
}

// deaf is a bus that loses every hint.
type deaf struct{ bus.Local }

func (*deaf) Hint(...bus.Key) {}

func TestALostHintCostsTimeAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, l *line) {
		l.open(1)
		l.says(time.Second, "1 active")
		l.site("s", "1")
		l.says(30*time.Second, "1 event 1", "1 heartbeat")
		l.put(`{"events":[]}`)
		l.says(30*time.Second, "1 terminated unknown_event", "1 end")
		l.put(manifest)
		l.open(2)
		l.forget("ada")
		l.says(30*time.Second, "2 active", "2 terminated forbidden", "2 end")
	}, func(o *core.Options) { o.Bus = new(deaf) })
}

// Streams that have come as far share what is read.
func TestStreamsOfOneTopicShareAPage(t *testing.T) {
	var s failing
	inBubble(t, func(t *testing.T, l *line) {
		const streams = 500
		for i := range int64(streams) {
			l.open(i + 1)
		}
		if got := l.said(time.Second); len(got) != streams {
			t.Fatalf("%d notices", len(got))
		}
		before := s.views.Load()
		l.site("s", "1")
		if got := l.said(time.Second); len(got) != streams {
			t.Fatalf("%d notices", len(got))
		}
		if n := s.views.Load() - before; n > 5 {
			t.Errorf("%d streams read %d times", streams, n)
		}
	}, func(o *core.Options) { s.Store, o.Store = o.Store, &s })
}

// One with much to catch up on takes turns with the others.
func TestABacklogHoldsUpNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, l *line) {
		start := l.poll(nil).Cursor
		for i := range 200 {
			l.site("s", fmt.Sprint(i))
		}
		l.open(1, start)
		l.open(2)
		for at := 0; ; at++ {
			n, ok := l.next(time.Second)
			if !ok || at > 100 {
				t.Fatalf("after %d notices: %+v", at, n)
			}
			if n.Stream == 2 {
				break
			}
		}
	})
}

func TestHowManyStreamsAUserMayHave(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *core.Options) { o.Limits.UserStreams = 2 })
	l, other := b.line(), b.line()
	l.open(1)
	other.open(1)
	err := l.Open(t.Context(), 2, siteRequest(native), core.Since{})
	if no := refusal.Of(err); no == nil || no.Code != refusal.SubscriptionLimit || !cmp.Equal(no.Detail, map[string]any{"limit": "streams", "max": 2}) {
		t.Errorf("%v", err)
	}
	if err := l.Open(t.Context(), 2, siteRequest(wake.Call{User: "bob"}), core.Since{}); err != nil {
		t.Error(err)
	}
	other.Close()
	l.open(3)
	l.CloseStream(1)
	l.open(4)
}

// Streams of nobody count for the app alone.
func TestHowManyStreamsAnAppMayHave(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *core.Options) { o.Limits.AppStreams = 2 })
	l, other := b.line(), b.line()
	l.open(1)
	open := func(l *line, id int64) error { return l.Open(t.Context(), id, siteRequest(wake.Call{}), core.Since{}) }
	if err := open(other, 1); err != nil {
		t.Fatal(err)
	}
	no := refusal.Of(open(l, 2))
	if no == nil || no.Code != refusal.SubscriptionLimit || !cmp.Equal(no.Detail, map[string]any{"limit": "streams", "max": 2}) {
		t.Errorf("%v", no)
	}
	other.CloseStream(1)
	if err := open(l, 2); err != nil {
		t.Error(err)
	}
}

func TestHowManyConnectionsAnAppMayHave(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var last *line
	for range 1000 {
		last = b.line()
	}
	_, err := b.core.NativeStreams(b.app)
	b.refused(err, refusal.SubscriptionLimit)
	last.Close()
	b.line()
}

func TestDeletingAnAppEndsStreams(t *testing.T) {
	inBubble(t, func(t *testing.T, l *line) {
		l.open(1)
		l.says(time.Second, "1 active")
		if err := l.core.DeleteApp(t.Context(), l.app.ID); err != nil {
			t.Fatal(err)
		}
		l.says(time.Second, "1 terminated unknown_event", "1 end")
	})
}

func TestAStreamsNumberIsTakenOnce(t *testing.T) {
	t.Parallel()
	l := setup(t).line()
	l.open(1)
	l.refused(l.Open(t.Context(), 1, siteRequest(native), core.Since{}), refusal.BadRequest)
	if l.Len() != 1 || !l.Has(1) || l.Has(2) {
		t.Errorf("%d streams", l.Len())
	}
	l.Close()
	l.Close()
	l.refused(l.Open(t.Context(), 2, siteRequest(native), core.Since{}), refusal.Unavailable)
}

// Streams come, go and are read at once, and whoever stays misses nothing.
func TestStreamsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.line()
	l.open(1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	busy := make(chan struct{})
	go func() {
		defer close(busy)
		for i := int64(2); ctx.Err() == nil; i++ {
			if err := l.Open(ctx, i, siteRequest(native), core.Since{}); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			switch i % 3 {
			case 0:
				l.Refuse(i)
			default:
				l.CloseStream(i)
			}
		}
	}()
	go func() {
		for i := range 200 {
			b.site("s", fmt.Sprint(i))
		}
	}()
	for want := 0; want < 200; {
		n, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n.Stream != 1 || n.Kind != core.NoticeEvent {
			continue
		}
		if text := fmt.Sprintf(`"data":{"pages":%d}`, want); !strings.Contains(string(n.Event), text) {
			t.Fatalf("%s, want %s", n.Event, text)
		}
		want++
	}
	stop()
	<-busy
}

// After a crash the core knows the same cursors.
func TestAStreamGoesOnAtARestartedCore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.line()
	l.open(1)
	begin, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.site("s", "1")
	l.Close()
	b.core.Close()
	if err := b.store.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), b.path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	again, err := core.New(t.Context(), core.Options{Store: s, Master: credential.NewMaster([32]byte{1}), PublicURL: "http://core.test"})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	streams, err := again.NativeStreams(b.app)
	if err != nil {
		t.Fatal(err)
	}
	defer streams.Close()
	if err := streams.Open(t.Context(), 1, siteRequest(native), core.Since{Cursor: &begin.Cursor}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []core.NoticeKind{core.NoticeActive, core.NoticeEvent} {
		n, err := streams.Next(t.Context())
		if err != nil || n.Kind != want || n.Truncated {
			t.Errorf("%+v, %v", n, err)
		}
	}
}
