package wakeshift_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// became is what became of each emission of a batch, in words.
func became(results []wakeshift.EmitResult) (words []string) {
	for _, one := range results {
		var refused *wakeshift.Error
		switch {
		case errors.As(one.Err, &refused):
			words = append(words, refused.Code)
		case one.Duplicate:
			words = append(words, "duplicate")
		default:
			words = append(words, fmt.Sprintf("matched %d", one.Matched))
		}
	}
	return words
}

func TestEmitBatch(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	finished := define(t, wake, "crawl.finished", crawlEvent())
	failed := define(t, wake, "crawl.failed", crawlEvent())
	batch := []wakeshift.Emission{
		prepare(t, finished, "j1", wakeshift.ID("crawl-1")), prepare(t, failed, "j2"), prepare(t, finished, "j1", wakeshift.ID("crawl-1")),
	}
	for range 2 { // sent again, each counts once, and only an id that the app gave is told to be a duplicate
		results, err := wake.EmitBatch(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"matched 0", "matched 0", "duplicate"}
		if len(core.seen("/events/emit")) == 2 {
			want[0] = "duplicate"
		}
		if diff := cmp.Diff(want, became(results)); diff != "" {
			t.Error(diff)
		}
	}
	var names []string
	for _, one := range core.seen("/events/emit")[0].Items {
		names = append(names, fmt.Sprint(one["name"], one["arguments"], one["text"]))
		if id, _ := one["id"].(string); id == "" {
			t.Errorf("an emission without id: %v", one)
		}
	}
	if diff := cmp.Diff([]string{
		"crawl.finishedmap[job:j1]Crawl j1 finished: 1 pages", "crawl.failedmap[job:j2]Crawl j2 finished: 1 pages",
		"crawl.finishedmap[job:j1]Crawl j1 finished: 1 pages",
	}, names); diff != "" {
		t.Error(diff)
	}
	if results, err := wake.EmitBatch(t.Context(), nil); err != nil || len(results) != 0 || len(core.seen("/events/emit")) != 2 {
		t.Errorf("nothing to emit: %v, %v, %d requests", results, err, len(core.seen("/events/emit")))
	}
}

func prepare(t *testing.T, event *wakeshift.Event[crawlArgs, crawl], job string, opts ...wakeshift.EmitOption) wakeshift.Emission {
	t.Helper()
	one, err := event.Prepare(crawlArgs{job}, crawl{1}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return one
}

func TestPrepareChecks(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	finished := define(t, wake, "crawl.finished", crawlEvent())
	if _, err := finished.Prepare(crawlArgs{"j1"}, crawl{1}, wakeshift.To("ada")); !wakeshift.IsCode(err, wakeshift.CodeBadArguments) {
		t.Errorf("not personal with To: %v", err)
	}
	elsewhere := prepare(t, define(t, newWake(t, core), "crawl.finished", crawlEvent()), "j1")
	for name, one := range map[string]wakeshift.Emission{"of nobody": {}, "of another Wakeshift": elsewhere} {
		results, err := wake.EmitBatch(t.Context(), []wakeshift.Emission{one})
		if !wakeshift.IsCode(err, wakeshift.CodeBadArguments) || !wakeshift.IsCode(results[0].Err, wakeshift.CodeBadArguments) {
			t.Errorf("%s: %v, %v", name, results, err)
		}
	}
	if n := len(core.seen("")); n != 0 {
		t.Errorf("%d requests for what was refused here", n)
	}
}

func TestEmitBatchSplits(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	finished := define(t, wake, "crawl.finished", crawlEvent())
	long := crawlEvent()
	long.Text = func(crawl, crawlArgs) string { return strings.Repeat("x", 1<<20) }
	novel := define(t, wake, "crawl.novel", long)
	var batch []wakeshift.Emission
	for range 2001 {
		batch = append(batch, prepare(t, finished, "j1"))
	}
	for range 8 {
		batch = append(batch, prepare(t, novel, "j1"))
	}
	results, err := wake.EmitBatch(t.Context(), batch)
	if err != nil || len(results) != len(batch) {
		t.Fatalf("%d results, %v", len(results), err)
	}
	var sizes []int
	for _, request := range core.seen("/events/emit") {
		sizes = append(sizes, len(request.Items))
		if body, err := json.Marshal(request.Items); err != nil || len(body) > 8<<20 {
			t.Errorf("a request of %d bytes, %v", len(body), err)
		}
	}
	if diff := cmp.Diff([]int{1000, 1000, 7, 2}, sizes); diff != "" {
		t.Error(diff)
	}
}

// One that is refused keeps none of the others back, and a manifest that the core has lost is put again.
func TestEmitBatchRefusals(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	finished := define(t, wake, "crawl.finished", crawlEvent())
	batch := []wakeshift.Emission{prepare(t, finished, "j1"), prepare(t, finished, "refused"), prepare(t, finished, "j1")}
	core.refuseJob("refused")
	for _, lost := range []bool{false, true} {
		if lost {
			core.forget()
		}
		results, err := wake.EmitBatch(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"matched 0", "bad_arguments", "matched 0"}, became(results)); diff != "" {
			t.Errorf("manifest lost: %v: %s", lost, diff)
		}
	}
	if n := len(core.seen("/manifest")); n != 2 {
		t.Errorf("the manifest was put %d times", n)
	}
}

func TestEmitBatchFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer answer
		code   string
	}{
		"refused":          {refuse(413, "too_large", "the body: at most 8 bytes"), "too_large"},
		"no results":       {ok(map[string]any{"matched": 1}), wakeshift.CodeBadResponse},
		"too few":          {ok(map[string]any{"results": []any{map[string]any{"matched": 1}}}), wakeshift.CodeBadResponse},
		"an empty result":  {ok(map[string]any{"results": []any{map[string]any{}, map[string]any{"matched": 1}}}), wakeshift.CodeBadResponse},
		"something else":   {answer{status: 200, body: "hello"}, wakeshift.CodeBadResponse},
		"no such manifest": {refuse(400, "bad_request", "must be a JSON object"), "bad_request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := startCore(t)
			wake := newWake(t, core)
			finished := define(t, wake, "crawl.finished", crawlEvent())
			core.on(func(r coreRequest) (answer, bool) { return c.answer, r.Path == "/events/emit" })
			results, err := wake.EmitBatch(t.Context(), []wakeshift.Emission{prepare(t, finished, "j1"), prepare(t, finished, "j2")})
			if !wakeshift.IsCode(err, c.code) {
				t.Errorf("got %v, want %s", err, c.code)
			}
			if diff := cmp.Diff([]string{c.code, c.code}, became(results)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// After a request that failed no more are sent, and what was stored before it stands.
func TestEmitBatchFailsHalfWay(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	finished := define(t, wake, "crawl.finished", crawlEvent())
	var batch []wakeshift.Emission
	for range 2500 {
		batch = append(batch, prepare(t, finished, "j1"))
	}
	requests := 0
	core.on(func(r coreRequest) (answer, bool) {
		if r.Path == "/events/emit" {
			requests++
		}
		return refuse(500, "internal", "no"), requests == 2
	})
	results, err := wake.EmitBatch(t.Context(), batch)
	if !wakeshift.IsCode(err, "internal") || requests != 2 {
		t.Errorf("%v after %d requests", err, requests)
	}
	if results[999].Err != nil || !wakeshift.IsCode(results[1000].Err, "internal") || !wakeshift.IsCode(results[2499].Err, "internal") {
		t.Errorf("got %v, %v, %v", results[999].Err, results[1000].Err, results[2499].Err)
	}
}
