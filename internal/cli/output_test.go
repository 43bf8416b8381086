package cli

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/trace"
)

var update = flag.Bool("update", false, "write the golden file anew")

// entries has one of each kind, as the core writes them.
var entries = []trace.Entry{
	{Kind: trace.Subscribed, App: "crawler", Event: "crawl.finished", Topic: "ev/crawl.finished/j1", Conversation: "k3j2h4abcdefgh27",
		Subscription: "sub_abcdefghijklmnop", Harness: "claude-code", Path: "monitor"},
	{Kind: trace.Renewed, App: "crawler", Topic: "news", Conversation: "k3j2h4abcdefgh27", Subscription: "sub_abcdefghijklmnop", Harness: "cursor", Path: "held"},
	{Kind: trace.Emitted, App: "crawler", Event: "crawl.finished", Topic: "ev/crawl.finished/j1", Occurrence: "evt_dydt1", Count: 2},
	{Kind: trace.Emitted, App: "crawler", Event: "crawl.finished", Topic: "ev/crawl.finished/j2", Occurrence: "evt_dydt2"},
	{Kind: trace.Emitted, App: "crawler", Event: "site.updated", Topic: "sites/example.com", Occurrence: "evt_dydt3", Count: 1},
	{Kind: trace.Duplicate, App: "crawler", Event: "crawl.finished", Topic: "ev/crawl.finished/j1", Occurrence: "evt_dydt1", Count: 2},
	{Kind: trace.Matched, App: "crawler", Event: "crawl.finished", Occurrence: "evt_dydt1", Conversation: "k3j2h4abcdefgh27", Detail: "nothing of it is connected"},
	{Kind: trace.Connected, App: "crawler", Conversation: "k3j2h4abcdefgh27", Harness: "claude-code", Path: "stream"},
	{Kind: trace.Disconnected, App: "crawler", Conversation: "k3j2h4abcdefgh27", Path: "stream"},
	{Kind: trace.Sent, App: "crawler", Conversation: "k3j2h4abcdefgh27", Event: "crawl.finished", Occurrence: "evt_dydt1", Path: "stream"},
	{Kind: trace.Delivered, App: "crawler", Conversation: "k3j2h4abcdefgh27", Path: "stream", Occurrence: "evt_dydt1", Detail: "and all before it"},
	{Kind: trace.Retrying, App: "crawler", Event: "crawl.finished", Occurrence: "evt_dydt1", Subscription: "sub_qrstuvwxyz234567", Path: "webhook", Count: 1, Detail: "http_5xx"},
	{Kind: trace.Abandoned, App: "crawler", Event: "crawl.finished", Occurrence: "evt_dydt1", Subscription: "sub_qrstuvwxyz234567", Path: "webhook", Count: 9, Detail: "timeout"},
	{Kind: trace.Ended, App: "crawler", Event: "crawl.finished", Topic: "ev/crawl.finished/j1", Conversation: "k3j2h4abcdefgh27", Subscription: "sub_abcdefghijklmnop"},
	{Kind: trace.Refused, Code: "unauthorized", Detail: "POST /api/apps/v1/events/emit"},
	{Kind: trace.Missed, Count: 12},
}

func TestTailLines(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	at := time.Date(2026, 11, 30, 17, 59, 58, 0, time.Local)
	for i, entry := range entries {
		entry.At = at.Add(time.Duration(i) * 123 * time.Millisecond)
		text.WriteString(tailLine(entry, false) + "\n")
	}
	const golden = "testdata/tail.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), text.String()); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestColours(t *testing.T) {
	t.Parallel()
	refused := trace.Entry{Kind: trace.Refused, At: time.Now()}
	if plain := tailLine(refused, false); strings.Contains(plain, "\x1b") {
		t.Errorf("colours without a terminal: %q", plain)
	}
	if painted := tailLine(refused, true); !strings.Contains(painted, "\x1b[31mrefused") {
		t.Errorf("no colours on a terminal: %q", painted)
	}
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as terminals are
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	for name, test := range map[string]struct {
		environ []string
		want    style
	}{
		"a terminal": {nil, true},
		"NO_COLOR":   {[]string{"NO_COLOR=1"}, false},
		"dumb":       {[]string{"TERM=dumb"}, false},
	} {
		p := &program{env: Env{Environ: test.environ}}
		if got := p.styleOf(terminal); got != test.want {
			t.Errorf("%s: %v; want %v", name, got, test.want)
		}
	}
	if (&program{}).styleOf(new(strings.Builder)) {
		t.Error("colours for what is no file")
	}
}

func TestShortID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"": "", "sub_abcdefghijklmnop": "sub_abcdefgh", "abcdefghijklmnop": "abcdefgh", "evt_ab1": "evt_ab1", "x": "x"} {
		if got := shortID(id); got != want {
			t.Errorf("%q: %q; want %q", id, got, want)
		}
	}
}
