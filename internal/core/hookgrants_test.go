package core_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

const day = 24 * time.Hour

// hookKept is a webhook as the store has it.
func (b *bench) hookKept(id string) (w wake.Webhook) {
	b.Helper()
	err := b.store.View(b.Context(), func(r store.Reader) (err error) {
		w, err = r.Webhook(id)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return w
}

// pages are the data of the events that were sent so far, in ascending order: webhooks promise none.
func (b *bench) pages() (pages []int) {
	b.Helper()
	for _, sent := range b.hooks.deliveries() {
		pages = append(pages, b.body(sent).Data.Pages)
	}
	slices.Sort(pages)
	return pages
}

func TestForHowLongAWebhookIsGranted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ttl  time.Duration
		want time.Duration // 0: without end
	}{
		"nothing asked":      {0, day},
		"next to nothing":    {1, 5 * time.Second},
		"just below least":   {5*time.Second - 1, 5 * time.Second},
		"the least":          {5 * time.Second, 5 * time.Second},
		"in between":         {90 * time.Minute, 90 * time.Minute},
		"the most":           {7 * day, 7 * day},
		"just above it":      {7*day + 1, 7 * day},
		"a hundred years":    {36500 * day, 7 * day},
		"without end":        {-1, 0},
		"as little as it is": {-1 << 63, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				q := hook
				q.TTL = c.ttl
				first := b.hooked(q)
				granted := map[string]time.Time{"at first": first.RefreshBefore, "as kept": b.hookKept(first.ID).ExpiresAt}
				want := map[string]time.Time{"at first": until(c.want), "as kept": until(c.want)}
				for was, ttl := range map[string]time.Duration{"the least": 1, "the most": 7 * day, "without end": -1} {
					other := at("https://hook.test/" + strings.ReplaceAll(was, " ", "-"))
					other.TTL = ttl
					b.hooked(other)
					time.Sleep(time.Second)
					other.TTL = c.ttl
					refreshed := b.hooked(other)
					if refreshed.Status == nil {
						t.Errorf("after %s: it is no refresh", was)
					}
					granted["after "+was], want["after "+was] = refreshed.RefreshBefore, until(c.want)
				}
				if diff := cmp.Diff(want, granted); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// until is the time so long from now; the zero time for never.
func until(wait time.Duration) time.Time {
	if wait == 0 {
		return time.Time{}
	}
	return time.Now().Add(wait).UTC()
}

func TestARefreshKeepsWhatAWebhookWasGiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.site("s", "1")
		start := b.poll(nil).Cursor
		first := b.hooked(hook)
		was := b.hookKept(first.ID)
		b.hooks.fail(core.HookResult{Retry: true, Status: 503, Reason: "http_5xx", RetryAfter: time.Hour})
		b.site("s", "2")
		time.Sleep(30 * time.Minute)
		q := hook
		q.TTL, q.Dialect, q.Cursor = 7*day, core.DialectFinal, &start // a refresh replays nothing
		again := b.hooked(q)
		if again.ID != first.ID || again.Truncated {
			t.Errorf("refreshed as %+v", again)
		}
		now := b.hookKept(first.ID)
		want := was
		want.Dialect, want.ExpiresAt = core.DialectFinal, time.Now().Add(7*day).UTC()
		want.Secret, now.Secret = nil, nil // sealed anew
		if diff := cmp.Diff(want, now); diff != "" {
			t.Error(diff)
		}
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]int{2, 2}, b.pages()); diff != "" {
			t.Errorf("what was queued: %s", diff)
		}
		if sent := b.hooks.deliveries(); sent[0].ID == sent[1].ID || !strings.HasPrefix(sent[1].ID, "msg_") {
			t.Errorf("sent as %s and, in the dialect of the refresh, as %s", sent[0].ID, sent[1].ID)
		}
	})
}

func TestAnExpiredWebhookBeginsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		q := hook
		q.TTL = time.Minute
		first := b.hooked(q)
		b.hooks.fail(core.HookResult{Retry: true, Status: 503, Reason: "http_5xx", RetryAfter: 10 * time.Minute})
		b.site("s", "1")
		time.Sleep(time.Minute)
		b.site("s", "2") // when nobody takes it
		second := b.hooked(q)
		if second.ID != first.ID || second.Status != nil || second.Cursor == first.Cursor {
			t.Errorf("began as %+v after %+v", second, first)
		}
		b.site("s", "3")
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]int{1, 3}, b.pages()); diff != "" {
			t.Errorf("the one that was tried, and what came since: %s", diff)
		}
	})
}

func TestWhatARefreshSaysOfDeliveries(t *testing.T) {
	t.Parallel()
	busy := core.HookResult{Retry: true, Status: 429, Reason: "http_4xx", RetryAfter: 10 * time.Minute}
	for name, c := range map[string]struct {
		results []core.HookResult
		suspend bool
		want    func(begun time.Time) core.HookStatus
	}{
		"nothing was sent": {nil, false, func(time.Time) core.HookStatus { return core.HookStatus{Active: true} }},
		"taken": {[]core.HookResult{taken}, false, func(begun time.Time) core.HookStatus {
			return core.HookStatus{Active: true, LastDeliveryAt: begun}
		}},
		"failing": {[]core.HookResult{taken, fault}, false, func(begun time.Time) core.HookStatus {
			return core.HookStatus{Active: true, LastDeliveryAt: begun, LastError: "http_5xx", FailedSince: begun.Add(time.Second)}
		}},
		"asked for time": {[]core.HookResult{busy}, false, func(begun time.Time) core.HookStatus {
			return core.HookStatus{Active: true, LastError: "http_4xx", FailedSince: begun, Throttled: true, RetryAfter: 10*time.Minute - time.Second}
		}},
		"suspended": {nil, true, func(begun time.Time) core.HookStatus {
			return core.HookStatus{LastError: "timeout", FailedSince: begun}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				granted := b.hooked(hook)
				if granted.Status != nil {
					t.Errorf("a new one has the status %+v", granted.Status)
				}
				begun := time.Now().UTC()
				b.hooks.fail(c.results...)
				for range c.results {
					b.site("s", "1")
					time.Sleep(time.Second)
				}
				if c.suspend {
					b.suspend(granted.ID, begun, "timeout")
				}
				status := b.hooked(hook).Status
				want := c.want(begun)
				if diff := cmp.Diff(&want, status); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestARefreshRevivesAWebhook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		granted := b.hooked(hook)
		b.suspend(granted.ID, time.Now(), "http_5xx")
		b.site("s", "1")
		time.Sleep(time.Hour)
		if sent := b.hooks.deliveries(); len(sent) != 0 {
			t.Errorf("sent %+v while it was suspended", sent)
		}
		if status := b.hooked(hook).Status; status.Active {
			t.Errorf("revived with %+v", status)
		}
		synctest.Wait()
		b.site("s", "2")
		synctest.Wait()
		if diff := cmp.Diff([]int{1, 2}, b.pages()); diff != "" {
			t.Error(diff)
		}
		if w := b.hookKept(granted.ID); w.Suspended || !w.SuspendedAt.IsZero() {
			t.Errorf("it is kept as %+v", w)
		}
		if status := b.hooked(hook).Status; !status.Active || status.LastError != "" || !status.FailedSince.IsZero() {
			t.Errorf("after it: %+v", status)
		}
	})
}

// What led to its suspension does not lead to the next one.
func TestARevivedWebhookIsJudgedAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		granted := b.hooked(hook)
		b.suspend(granted.ID, time.Now(), "http_4xx")
		b.update(func(tx store.Tx) error {
			return tx.PutHealth(wake.Health{Webhook: granted.ID, WindowAt: time.Now(), Attempts: 100, Failures: 100, ThrottledUntil: time.Now().Add(time.Hour)})
		})
		b.hooked(hook)
		b.hooks.fail(core.HookResult{Status: 410, Reason: "http_4xx"})
		b.site("s", "1")
		b.site("s", "2")
		synctest.Wait()
		if diff := cmp.Diff([]int{1, 2}, b.pages()); diff != "" {
			t.Errorf("sent at once: %s", diff)
		}
		if status := b.hooked(hook).Status; !status.Active || status.Throttled {
			t.Errorf("after a failure and a success: %+v", status)
		}
	})
}

func TestWhichSecretsSign(t *testing.T) {
	t.Parallel()
	type refresh struct {
		after  time.Duration
		secret string
	}
	for name, c := range map[string]struct {
		refreshes []refresh
		then      time.Duration
		want      []string
	}{
		"the same":                       {[]refresh{{0, "one"}}, 0, []string{"one"}},
		"another":                        {[]refresh{{0, "two"}}, 0, []string{"two", "one"}},
		"another, nearly a day later":    {[]refresh{{0, "two"}}, day - time.Second, []string{"two", "one"}},
		"another, a day later":           {[]refresh{{0, "two"}}, day, []string{"two"}},
		"a refresh makes it no longer":   {[]refresh{{0, "two"}, {12 * time.Hour, "two"}}, 12 * time.Hour, []string{"two"}},
		"nor does it end it":             {[]refresh{{0, "two"}, {time.Hour, "two"}}, time.Hour, []string{"two", "one"}},
		"a third leaves the first":       {[]refresh{{0, "two"}, {time.Hour, "three"}}, 0, []string{"three", "two"}},
		"and its grace begins with it":   {[]refresh{{0, "two"}, {23 * time.Hour, "three"}}, 23 * time.Hour, []string{"three", "two"}},
		"back again":                     {[]refresh{{0, "two"}, {time.Hour, "one"}}, 0, []string{"one", "two"}},
		"back again, and a day after it": {[]refresh{{0, "two"}, {time.Hour, "one"}}, day, []string{"one"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				q := hook
				q.TTL, q.Secret = -1, "one"
				b.hooked(q)
				for _, one := range c.refreshes {
					time.Sleep(one.after)
					q.Secret = one.secret
					b.hooked(q)
				}
				time.Sleep(c.then)
				b.site("s", "1")
				synctest.Wait()
				if diff := cmp.Diff(c.want, b.hooks.deliveries()[0].Target.Secrets); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// Where a new webhook begins. Three events are there before it, an hour apart, and one comes after it.
func TestWhereAWebhookBegins(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cursor    func(b *bench, start string) string // nil: none is given
		maxAge    time.Duration
		pages     []int
		truncated bool
	}{
		"no cursor":             {nil, 0, []int{4}, false},
		"at the start":          {func(_ *bench, start string) string { return start }, 0, []int{1, 2, 3, 4}, false},
		"after the first":       {func(b *bench, start string) string { return b.cursorAfter(start, 1) }, 0, []int{2, 3, 4}, false},
		"after the last":        {func(b *bench, start string) string { return b.cursorAfter(start, 3) }, 0, []int{4}, false},
		"an empty one":          {func(*bench, string) string { return "" }, 0, []int{4}, true},
		"none of ours":          {func(*bench, string) string { return "yesterday" }, 0, []int{4}, true},
		"another log's":         {func(*bench, string) string { return "c1.aaaaaaaa.1" }, 0, []int{4}, true},
		"of the future":         {func(_ *bench, start string) string { return start[:strings.LastIndex(start, ".")] + ".zz" }, 0, []int{4}, true},
		"none older than that":  {func(_ *bench, start string) string { return start }, 3 * time.Hour, []int{1, 2, 3, 4}, false},
		"one older":             {func(_ *bench, start string) string { return start }, 3*time.Hour - 1000, []int{2, 3, 4}, true},
		"all older":             {func(_ *bench, start string) string { return start }, time.Minute, []int{4}, true},
		"the newest after it":   {func(b *bench, start string) string { return b.cursorAfter(start, 2) }, time.Hour, []int{3, 4}, false},
		"an age, but no cursor": {nil, time.Hour, []int{4}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				start := b.poll(nil).Cursor
				for i := 1; i <= 3; i++ {
					b.site("s", fmt.Sprint(i))
					b.site("other", "9")
					time.Sleep(time.Hour)
				}
				q := hook
				q.MaxAge = c.maxAge
				if c.cursor != nil {
					q.Cursor = ptr(c.cursor(b, start))
				}
				granted := b.hooked(q)
				if granted.Truncated != c.truncated || granted.Status != nil {
					t.Errorf("granted %+v, want truncated %v", granted, c.truncated)
				}
				b.site("s", "4")
				synctest.Wait()
				if diff := cmp.Diff(c.pages, b.pages()); diff != "" {
					t.Error(diff)
				}
				// Whoever keeps the cursor of the answer and loses all deliveries has lost nothing.
				var later []int
				for _, e := range b.poll(&granted.Cursor).Events {
					var one struct{ Pages int }
					if err := json.Unmarshal(e.Data, &one); err != nil {
						t.Fatal(err)
					}
					later = append(later, one.Pages)
				}
				if diff := cmp.Diff(c.pages, later); diff != "" {
					t.Errorf("after its cursor: %s", diff)
				}
			})
		})
	}
}

func TestARetentionTruncatesWhereAWebhookBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(o *core.Options) { o.Retention = time.Hour })
		start := b.poll(nil).Cursor
		b.site("s", "1")
		kept := b.cursorAfter(start, 1)
		time.Sleep(90 * time.Minute)
		b.site("s", "2")
		if err := b.core.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			url, cursor string
			truncated   bool
		}{{"https://hook.test/before", start, true}, {"https://hook.test/at", kept, false}} {
			q := at(c.url)
			q.Cursor = &c.cursor
			if granted := b.hooked(q); granted.Truncated != c.truncated {
				t.Errorf("%s: truncated %v", c.url, granted.Truncated)
			}
			synctest.Wait()
			if sent := b.to(c.url); len(sent) != 1 || b.body(sent[0]).Data.Pages != 2 {
				t.Errorf("%s: sent %+v", c.url, sent)
			}
		}
	})
}

func TestHowMuchIsReplayedToANewWebhook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events    int
		truncated bool
	}{"the most": {500, false}, "one more": {501, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				q := hook
				q.Cursor = ptr(b.poll(nil).Cursor)
				for range c.events {
					b.site("s", "1")
				}
				if granted := b.hooked(q); granted.Truncated != c.truncated {
					t.Errorf("truncated %v", granted.Truncated)
				}
				time.Sleep(time.Minute)
				if n := len(b.hooks.deliveries()); n != 500 {
					t.Errorf("%d were sent, want 500", n)
				}
			})
		})
	}
}

// What goes because too much waits is told, once, with a place to go on from.
func TestAnEndpointIsToldOfTheGapInItsQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		granted := b.hooked(hook)
		b.update(func(tx store.Tx) error {
			topic := b.hookKept(granted.ID).Topic
			for range 10_002 {
				seq, err := tx.Append(wake.Occurrence{App: b.app.ID, Kind: wake.KindEvent, Event: "site.updated", Topics: []string{topic},
					Data: json.RawMessage(`{"pages":1}`), At: time.Now()})
				if err != nil {
					return err
				}
				if err := tx.QueueDelivery(wake.Delivery{Webhook: granted.ID, Seq: seq, NextAt: time.Now().Add(day)}); err != nil {
					return err
				}
			}
			return nil
		})
		b.hooks.fail(fault)
		for range 2 { // the second time there is nothing to drop
			if err := b.core.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		sent := b.hooks.deliveries()
		if len(sent) != 2 || !strings.HasPrefix(sent[0].ID, "msg_gap_") || !cmp.Equal(sent[0], sent[1]) {
			t.Fatalf("sent %+v, want one notice twice", sent)
		}
		body := b.body(sent[0])
		if body.Type != "gap" || b.poll(&body.Cursor).Truncated || sent[0].Target.Subscription != granted.ID {
			t.Errorf("sent %s to %+v", sent[0].Body, sent[0].Target)
		}
		var fields map[string]any
		if err := json.Unmarshal([]byte(sent[0].Body), &fields); err != nil || len(fields) != 2 {
			t.Errorf("sent %s, %v", sent[0].Body, err)
		}
	})
}
