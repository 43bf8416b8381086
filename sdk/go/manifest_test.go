package wakeshift_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// The manifest of events of every kind, as the core gets it.
func TestManifestGolden(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	type args struct {
		Word   string  `json:"word" jsonschema:"a word"`
		Number int     `json:"number"`
		Flag   bool    `json:"flag"`
		Level  *string `json:"level"`
		Limit  float64 `json:"limit,omitempty"`
	}
	type note struct {
		Text string   `json:"text"`
		Tags []string `json:"tags"`
	}
	type payload struct {
		Level string         `json:"level"`
		Limit float64        `json:"limit"`
		Notes []note         `json:"notes,omitempty"`
		Extra map[string]any `json:"extra,omitempty"`
		Small uint8          `json:"small"`
		Note  *note          `json:"note"`
	}
	finished := define(t, wake, "crawl.finished", crawlEvent())
	define(t, wake, "site.updated", siteEvent())
	define(t, wake, "every-kind.of_event", wakeshift.EventDef[args, payload]{
		Title: "Every kind", Description: "  Everything an event can have ", Personal: true, DeleteOnDelivery: true,
		Text: func(payload, args) string { return "" },
	})
	define(t, wake, "anything", wakeshift.EventDef[struct{}, map[string]any]{
		Description: "No arguments, any payload", Text: func(map[string]any, struct{}) string { return "" },
	})
	if _, err := finished.Emit(t.Context(), crawlArgs{"j1"}, crawl{1}); err != nil {
		t.Fatal(err)
	}
	puts := core.seen("/manifest")
	if len(puts) != 1 || puts[0].Method != http.MethodPut {
		t.Fatalf("the manifest was put %d times", len(puts))
	}
	got, err := json.MarshalIndent(puts[0].Body, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "manifest.json", append(got, '\n'))
}

func TestManifestIsPutAgainAfterDefining(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	emit := func(e *wakeshift.Event[crawlArgs, crawl]) {
		t.Helper()
		if _, err := e.Emit(t.Context(), crawlArgs{"j1"}, crawl{1}); err != nil {
			t.Fatal(err)
		}
	}
	first := define(t, wake, "crawl.one", crawlEvent())
	emit(first)
	emit(first)
	second := define(t, wake, "crawl.two", crawlEvent())
	emit(second)
	emit(first)
	var sizes []int
	for _, put := range core.seen("/manifest") {
		sizes = append(sizes, len(put.Body["events"].([]any)))
	}
	if diff := cmp.Diff([]int{1, 2}, sizes); diff != "" {
		t.Errorf("events in each PUT (-want +got):\n%s", diff)
	}
}

// A core that was given fresh data while the app runs has its manifest again with the next call.
func TestManifestIsPutAgainForACoreThatLostIt(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	finished := define(t, wake, "crawl.finished", crawlEvent())
	emit := func() error {
		_, err := finished.Emit(t.Context(), crawlArgs{"j1"}, crawl{1})
		return err
	}
	if err := emit(); err != nil {
		t.Fatal(err)
	}
	core.forget()
	if err := emit(); err != nil {
		t.Error(err)
	}
	if puts := core.seen("/manifest"); len(puts) != 2 {
		t.Errorf("the manifest was put %d times, want 2", len(puts))
	}
	// One that keeps refusing is believed.
	core.on(func(r coreRequest) (answer, bool) {
		return refuse(404, "unknown_event", "no such event"), r.Path == "/events/emit"
	})
	if err := emit(); !wakeshift.IsCode(err, "unknown_event") {
		t.Errorf("got %v", err)
	}
	if emits := core.seen("/events/emit"); len(emits) != 5 {
		t.Errorf("%d emits, want two after each refusal but no more", len(emits))
	}
}

func TestManifestIsPutOnceForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core := offlineCore()
		release := make(chan struct{})
		inner := core.client().Transport
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPut {
				<-release
			}
			return inner.RoundTrip(r)
		})}
		wake := newWake(t, core, wakeshift.WithHTTPClient(client))
		finished := define(t, wake, "crawl.finished", crawlEvent())
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				if _, err := finished.Emit(t.Context(), crawlArgs{fmt.Sprintf("j%d", i)}, crawl{i}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // all wait for the one PUT
		close(release)
		all.Wait()
		if n := len(core.seen("/manifest")); n != 1 {
			t.Errorf("the manifest was put %d times", n)
		}
	})
}

// Who starts the PUT may go away; the others still get it.
func TestManifestOutlivesItsFirstCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core := offlineCore()
		release := make(chan struct{})
		inner := core.client().Transport
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPut {
				select {
				case <-release:
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
			}
			return inner.RoundTrip(r)
		})}
		wake := newWake(t, core, wakeshift.WithHTTPClient(client))
		finished := define(t, wake, "crawl.finished", crawlEvent())
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := finished.Emit(ctx, crawlArgs{"j1"}, crawl{1}); !wakeshift.IsCode(err, wakeshift.CodeUnreachable) {
				t.Errorf("the caller that went away got %v", err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if _, err := finished.Emit(t.Context(), crawlArgs{"j2"}, crawl{1}); err != nil {
				t.Errorf("the other caller got %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(release)
		all.Wait()
	})
}

func TestFailedManifestIsPutByTheNextCaller(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	finished := define(t, wake, "crawl.finished", crawlEvent())
	core.on(func(r coreRequest) (answer, bool) { return refuse(400, "bad_request", "no"), r.Path == "/manifest" })
	if _, err := finished.Emit(t.Context(), crawlArgs{"j1"}, crawl{1}); !wakeshift.IsCode(err, "bad_request") {
		t.Fatalf("the error is %v", err)
	}
	core.on(nil)
	if _, err := finished.Emit(t.Context(), crawlArgs{"j1"}, crawl{1}); err != nil {
		t.Fatal(err)
	}
	if n := len(core.seen("/manifest")); n != 2 {
		t.Errorf("the manifest was put %d times", n)
	}
}

func TestDefineEventRefuses(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	define(t, wake, "taken", crawlEvent())
	try := func(name string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want something of %q", name, err, want)
		}
	}
	for _, name := range []string{"", "Upper", "a..b", ".a", "a.", "1st", "a b", "a.b.c.d.e.f", "a\n", strings.Repeat("a", 65)} {
		_, err := wakeshift.DefineEvent(wake, name, crawlEvent())
		try(name, err, "lowercase words")
	}
	for _, name := range []string{strings.Repeat("a", 64), "a-1.b_2.c.d.e"} {
		if _, err := wakeshift.DefineEvent(wake, name, crawlEvent()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := wakeshift.DefineEvent(wake, "wakeshift.mine", crawlEvent())
	try("reserved", err, "reserved")
	_, err = wakeshift.DefineEvent(wake, "taken", crawlEvent())
	try("twice", err, "twice")
	_, err = wakeshift.DefineEvent(nil, "x", crawlEvent())
	try("no wake", err, "Wakeshift")
	_, err = wakeshift.DefineEvent(wake, "x", wakeshift.EventDef[crawlArgs, crawl]{Description: "d"})
	try("no text", err, "Text")
	_, err = wakeshift.DefineEvent(wake, "x", wakeshift.EventDef[crawlArgs, crawl]{Description: " ", Text: crawlText})
	try("no description", err, "Description")
}

func TestDefineEventRefusesTypes(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	try := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want something of %q", err, want)
		}
	}
	try("route", defineTyped[struct {
		N float64 `json:"n"`
	}, crawl](wake))
	try("route", defineTyped[struct {
		N []string `json:"n"`
	}, crawl](wake))
	try("filters", defineTyped[struct {
		N []string `json:"n,omitempty"`
	}, crawl](wake))
	try("payload lacks", defineTyped[struct {
		Level string `json:"level,omitempty"`
	}, crawl](wake))
	try("argument name", defineTyped[struct{ Upper string }, crawl](wake))
	try("argument name", defineTyped[struct {
		V string `json:"wakeshift_voucher"`
	}, crawl](wake))
	try("ArgsSchema", defineTyped[map[string]string, crawl](wake))
	try("schema of the arguments", defineTyped[string, crawl](wake))
	try("schema of the payload", defineTyped[crawlArgs, []int](wake))
	try("schema of the payload", defineTyped[crawlArgs, chan int](wake))
	try("schema of the payload", defineTyped[crawlArgs, recursive](wake))
}

type recursive struct {
	Next *recursive `json:"next,omitempty"`
}

func defineTyped[A, P any](wake *wakeshift.Wakeshift) error {
	_, err := wakeshift.DefineEvent(wake, "typed", wakeshift.EventDef[A, P]{
		Description: "d", Text: func(P, A) string { return "" },
	})
	return err
}
