package connector_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/wake"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	occurrence = regexp.MustCompile(`evt_[a-z2-7]{4}[0-9a-z]+`)
	moment     = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)
)

// The frames as they are on the wire, one a line.
func TestFrames(t *testing.T) {
	t.Parallel()
	l := setup(t)
	c := l.conversation("t1")
	call := wake.Call{Client: "codex-mcp-client", Meta: json.RawMessage(`{"x-codex-turn-metadata":{"thread_id":"t1"}}`)}
	if _, err := l.Core.SubscribeTopic(t.Context(), l.App, call, "news", core.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	s := l.connect(c.url())
	l.Emit("t1", `{"pages":12}`, "Crawl t1 finished: 12 pages")
	l.Emit("t1", `{"pages":1,"a":1.50e+3,"b":-0,"c":12345678901234567890123,"note":"🦀 <b>`+"\u2028"+`\u0000"}`, "🦀 <b> \"quoted\"\n\u2028")
	for _, data := range []string{`{"level":"high"}`, ``} {
		if _, err := l.Core.Publish(t.Context(), l.App, core.Publish{Topics: []string{"news"}, Text: "It rains", Data: json.RawMessage(data)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Core.CloseTopic(t.Context(), l.App, "news"); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for range 5 {
		all.WriteString(moment.ReplaceAllString(occurrence.ReplaceAllString(s.text(), "‹id›"), "‹time›") + "\n")
	}
	path := filepath.Join("testdata", "frames.golden")
	if *update {
		if err := os.WriteFile(path, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("%s (-want +got, -update writes it anew):\n%s", path, diff)
	}
	if bytes.Contains(want, []byte("\u2028")) {
		t.Error("a frame holds what some readers take for the end of a line")
	}
}
