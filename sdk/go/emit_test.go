package wakeshift_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

func TestEmit(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	finished := define(t, wake, "crawl.finished", crawlEvent())
	got, err := finished.Emit(t.Context(), crawlArgs{"j1"}, crawl{12}, wakeshift.ID("crawl-1"))
	if err != nil || got != (wakeshift.Emitted{}) {
		t.Fatalf("Emit: %+v, %v", got, err)
	}
	got, err = finished.Emit(t.Context(), crawlArgs{"j1"}, crawl{12}, wakeshift.ID("crawl-1"))
	if err != nil || got != (wakeshift.Emitted{Duplicate: true}) {
		t.Fatalf("Emit again: %+v, %v", got, err)
	}
	want := map[string]any{
		"name": "crawl.finished", "arguments": map[string]any{"job": "j1"}, "payload": map[string]any{"pages": 12.0},
		"text": "Crawl j1 finished: 12 pages", "id": "crawl-1",
	}
	if diff := cmp.Diff(want, core.seen("/events/emit")[0].Body); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestEmitPersonal(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	def := crawlEvent()
	def.Personal = true
	personal := define(t, wake, "your.turn", def)
	shared := define(t, wake, "crawl.finished", crawlEvent())
	if _, err := personal.Emit(t.Context(), crawlArgs{"j1"}, crawl{1}); !wakeshift.IsCode(err, wakeshift.CodeBadArguments) {
		t.Errorf("personal without To: %v", err)
	}
	if _, err := shared.Emit(t.Context(), crawlArgs{"j1"}, crawl{1}, wakeshift.To("ada")); !wakeshift.IsCode(err, wakeshift.CodeBadArguments) {
		t.Errorf("not personal with To: %v", err)
	}
	if n := len(core.seen("")); n != 0 {
		t.Errorf("%d requests for what was refused here", n)
	}
	if _, err := personal.Emit(t.Context(), crawlArgs{"j1"}, crawl{1}, wakeshift.To("ada")); err != nil {
		t.Fatal(err)
	}
	if to := core.seen("/events/emit")[0].Body["to"]; to != "ada" {
		t.Errorf("to is %v", to)
	}
}

func TestEmitChecksFirst(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	def := crawlEvent()
	def.ArgsSchema = schemaOf(t, `{"type":"object","properties":{"job":{"type":"string","pattern":"^j"}},"required":["job"]}`)
	def.PayloadSchema = schemaOf(t, `{"type":"object","properties":{"pages":{"type":"integer","minimum":1}},"required":["pages"]}`)
	finished := define(t, wake, "crawl.finished", def)
	_, err := finished.Emit(t.Context(), crawlArgs{"secret"}, crawl{1})
	if !wakeshift.IsCode(err, wakeshift.CodeBadArguments) || !strings.Contains(err.Error(), `"job"`) || strings.Contains(err.Error(), "secret") {
		t.Errorf("bad arguments: %v", err)
	}
	_, err = finished.Emit(t.Context(), crawlArgs{"j1"}, crawl{-987})
	if !wakeshift.IsCode(err, wakeshift.CodeBadPayload) || !strings.Contains(err.Error(), `"pages"`) || strings.Contains(err.Error(), "987") {
		t.Errorf("bad payload: %v", err)
	}
	if n := len(core.seen("")); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestEmitWithPanickingText(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	def := crawlEvent()
	def.Text = func(p crawl, _ crawlArgs) string { panic(fmt.Sprintf("a secret of %d pages", p.Pages)) }
	broken := define(t, wake, "crawl.broken", def)
	_, err := broken.Emit(t.Context(), crawlArgs{"j1"}, crawl{1})
	if err == nil || !strings.Contains(err.Error(), "Text of crawl.broken panicked") || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}
}
