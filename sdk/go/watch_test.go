package wakeshift_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

func never(context.Context) (*crawl, error) { return nil, nil }

// pass lets fake time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// watching runs a test of watches in fake time.
func watching(t *testing.T, test func(t *testing.T, core *fakeCore, wake *wakeshift.Wakeshift, e *wakeshift.Event[crawlArgs, crawl])) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core := offlineCore()
		wake := newWake(t, core, wakeshift.WithHTTPClient(core.client()))
		test(t, core, wake, define(t, wake, "crawl.finished", crawlEvent()))
	})
}

func TestWatch(t *testing.T) {
	watching(t, func(t *testing.T, core *fakeCore, wake *wakeshift.Wakeshift, e *wakeshift.Event[crawlArgs, crawl]) {
		start := time.Now()
		var checks []time.Duration
		check := func(context.Context) (*crawl, error) {
			checks = append(checks, time.Since(start))
			if len(checks) < 4 {
				return nil, nil
			}
			return &crawl{Pages: 9}, nil
		}
		for range 2 { // the second is the same watch
			if err := e.Watch(crawlArgs{"j1"}, check, wakeshift.WatchOptions{Every: 2 * time.Second}); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Hour)
		if diff := cmp.Diff([]time.Duration{0, 2 * time.Second, 4 * time.Second, 6 * time.Second}, checks); diff != "" {
			t.Errorf("checks (-want +got):\n%s", diff)
		}
		emits := core.seen("/events/emit")
		if len(emits) != 1 || emits[0].Body["text"] != "Crawl j1 finished: 9 pages" {
			t.Errorf("emits: %v", emits)
		}
		if n := wakeshift.RunningWatches(wake); n != 0 {
			t.Errorf("%d watches still run", n)
		}
	})
}

// Other arguments and another user are other watches.
func TestWatchesApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core := offlineCore()
		wake := newWake(t, core, wakeshift.WithHTTPClient(core.client()))
		def := crawlEvent()
		def.Personal = true
		personal := define(t, wake, "your.turn", def)
		for _, who := range []string{"ada", "bob", "ada"} {
			for _, job := range []string{"j1", "j2"} {
				if err := personal.Watch(crawlArgs{job}, never, wakeshift.WatchOptions{To: who}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := wakeshift.RunningWatches(wake); n != 4 {
			t.Errorf("%d watches run", n)
		}
		if err := personal.Watch(crawlArgs{"j1"}, never, wakeshift.WatchOptions{}); !wakeshift.IsCode(err, wakeshift.CodeBadArguments) {
			t.Errorf("personal without To: %v", err)
		}
	})
}

func TestWatchTimesOut(t *testing.T) {
	watching(t, func(t *testing.T, core *fakeCore, wake *wakeshift.Wakeshift, e *wakeshift.Event[crawlArgs, crawl]) {
		var last time.Time
		check := func(ctx context.Context) (*crawl, error) {
			last = time.Now()
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > 2*time.Minute {
				t.Error("the check does not know the deadline")
			}
			return nil, nil
		}
		start := time.Now()
		if err := e.Watch(crawlArgs{"j1"}, check, wakeshift.WatchOptions{Every: time.Second, Timeout: 2 * time.Minute}); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		if ran := last.Sub(start); ran < 118*time.Second || ran > 120*time.Second {
			t.Errorf("checked for %v", ran)
		}
		if n := len(core.seen("")); n != 0 || wakeshift.RunningWatches(wake) != 0 {
			t.Errorf("%d requests, %d watches", n, wakeshift.RunningWatches(wake))
		}
	})
}

func TestWatchBacksOff(t *testing.T) {
	watching(t, func(t *testing.T, core *fakeCore, wake *wakeshift.Wakeshift, e *wakeshift.Event[crawlArgs, crawl]) {
		start := time.Now()
		var checks []time.Duration
		check := func(context.Context) (*crawl, error) {
			checks = append(checks, time.Since(start).Round(time.Second))
			switch len(checks) {
			case 1, 2, 4:
				return nil, errors.New("not reachable")
			case 3:
				panic("a bug")
			case 5:
				return nil, nil // starts afresh
			}
			return &crawl{}, nil
		}
		if err := e.Watch(crawlArgs{"j1"}, check, wakeshift.WatchOptions{Every: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		want := []time.Duration{0, 10 * time.Second, 30 * time.Second, 70 * time.Second, 130 * time.Second, 140 * time.Second}
		if diff := cmp.Diff(want, checks); diff != "" {
			t.Errorf("checks (-want +got):\n%s", diff)
		}
		if n := len(core.seen("/events/emit")); n != 1 {
			t.Errorf("%d emits", n)
		}
	})
}

// An emit that fails for now is repeated with the same id until it succeeds.
func TestWatchEmitsInTheEnd(t *testing.T) {
	watching(t, func(t *testing.T, core *fakeCore, wake *wakeshift.Wakeshift, e *wakeshift.Event[crawlArgs, crawl]) {
		var asked int
		core.on(func(r coreRequest) (answer, bool) {
			if r.Path != "/events/emit" {
				return answer{}, false
			}
			asked++
			return refuse(http.StatusInternalServerError, "internal", "not now"), asked < 5
		})
		found := func(context.Context) (*crawl, error) { return &crawl{7}, nil }
		if err := e.Watch(crawlArgs{"j1"}, found, wakeshift.WatchOptions{Every: time.Second}); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		ids := map[any]bool{}
		emits := core.seen("/events/emit")
		for _, r := range emits {
			ids[r.Body["id"]] = true
		}
		if len(emits) != 5 || len(ids) != 1 {
			t.Errorf("%d emits with %d ids", len(emits), len(ids))
		}
	})
}

// An emit the core will never take is not repeated.
func TestWatchGivesUpOnRefusal(t *testing.T) {
	watching(t, func(t *testing.T, core *fakeCore, wake *wakeshift.Wakeshift, e *wakeshift.Event[crawlArgs, crawl]) {
		core.on(func(r coreRequest) (answer, bool) {
			return refuse(http.StatusBadRequest, "bad_arguments", "no"), r.Path == "/events/emit"
		})
		found := func(context.Context) (*crawl, error) { return &crawl{7}, nil }
		if err := e.Watch(crawlArgs{"j1"}, found, wakeshift.WatchOptions{Every: time.Second}); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		if n := len(core.seen("/events/emit")); n != 1 || wakeshift.RunningWatches(wake) != 0 {
			t.Errorf("%d emits, %d watches", n, wakeshift.RunningWatches(wake))
		}
	})
}

func TestCloseStopsWatches(t *testing.T) {
	watching(t, func(t *testing.T, core *fakeCore, wake *wakeshift.Wakeshift, e *wakeshift.Event[crawlArgs, crawl]) {
		cancelled := false
		check := func(ctx context.Context) (*crawl, error) {
			<-ctx.Done()
			cancelled = true
			return &crawl{}, ctx.Err()
		}
		if err := e.Watch(crawlArgs{"j1"}, check, wakeshift.WatchOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := wake.Close(); err != nil {
			t.Error(err)
		}
		if !cancelled || len(core.seen("")) != 0 {
			t.Errorf("cancelled: %v, requests: %d", cancelled, len(core.seen("")))
		}
	})
}

// A check that does not heed its context cannot hold Close up for ever.
func TestCloseGivesUpOnStubbornChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core := offlineCore()
		wake, err := wakeshift.New(wakeshift.WithKey(core.key), wakeshift.WithCore(core.URL), wakeshift.WithLogger(quiet))
		if err != nil {
			t.Fatal(err)
		}
		e := define(t, wake, "crawl.finished", crawlEvent())
		release := make(chan struct{})
		defer close(release)
		check := func(context.Context) (*crawl, error) {
			<-release
			return nil, nil
		}
		if err := e.Watch(crawlArgs{"j1"}, check, wakeshift.WatchOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := wake.Close(); err == nil || !strings.Contains(err.Error(), "1 watches") {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestWatchesAreLimited(t *testing.T) {
	watching(t, func(t *testing.T, core *fakeCore, wake *wakeshift.Wakeshift, e *wakeshift.Event[crawlArgs, crawl]) {
		for i := range wakeshift.MaxWatches {
			if err := wakeshift.StartWatch(wake, i); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Watch(crawlArgs{"one-more"}, never, wakeshift.WatchOptions{}); err == nil || !strings.Contains(err.Error(), "10000") {
			t.Errorf("the error is %v", err)
		}
		if err := e.Watch(crawlArgs{"j1"}, nil, wakeshift.WatchOptions{}); err == nil {
			t.Error("a watch without a check is accepted")
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	var got []time.Duration
	for _, failures := range []int{0, 1, 2, 5, 6, 1 << 30} {
		got = append(got, wakeshift.Backoff(time.Second, failures))
	}
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 32 * time.Second, time.Minute, time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if got := wakeshift.Backoff(time.Hour, 3); got != time.Hour {
		t.Errorf("a long Every becomes %v", got)
	}
}
