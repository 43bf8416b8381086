package monitor

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/wake"
)

var update = flag.Bool("update", false, "write the golden files anew")

const whole = "https://wake.example.com/w/wss_abcdefghijklmnopqrstuvwxyz234567/messages/evt_abcd1"

func TestLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 20_000)
	event := func(text, data string) core.Message {
		return core.Message{ID: "evt_abcd1", Kind: wake.KindEvent, Text: text, Data: json.RawMessage(data)}
	}
	for name, m := range map[string]core.Message{
		"event":          event("Crawl j1 finished: 12 pages", `{"pages":12}`),
		"no-data":        {ID: "evt_abcd1", Kind: wake.KindEvent, Text: "hi"},
		"ended":          {ID: "evt_abcd1", Kind: wake.KindEnded, Text: "Your subscription to crawl.finished ended."},
		"unicode":        event("🦀 שלום \"quoted\"\nline \u2028\u2029 <b>&", "{\"note\":\"a\u2028b<c>\"}"),
		"long-text":      {ID: "evt_abcd1", Kind: wake.KindEvent, Text: "Crawl finished " + long},
		"long-string":    event("Crawl finished", `{"pages":12,"note":"`+long+`","host":"example.com"}`),
		"long-list":      event("Crawl finished", `{"urls":["`+strings.Repeat(`a","`, 400)+`"],"pages":12}`),
		"many-members":   event("Crawl finished", `{"a1":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","a2":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","a3":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","a4":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","a5":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","a6":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","a7":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","a8":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}`),
		"long-both":      event(long, `{"note":"`+long+`","pages":12}`),
		"astral":         event("Crawl finished", `{"note":"`+strings.Repeat("🦀", 300)+`"}`),
		"escaped":        event("Crawl finished", `{"note":"`+strings.Repeat(`\u0001`, 300)+`"}`),
		"escaped-both":   event(strings.Repeat("\x01", 300), `{"note":"`+strings.Repeat(`\u0001`, 300)+`","pages":12}`),
		"number-literal": event("n", `{"n":1.0e400,"big":`+strings.Repeat("9", 40)+`}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := lineOf(m, whole)
			checkLine(t, got)
			golden(t, name, got)
		})
	}
	t.Run("digest", func(t *testing.T) {
		t.Parallel()
		got := digestLine("Crawler", slices.Repeat([]core.Message{event("x", "{}")}, 14), strings.Replace(whole, "/evt_abcd1", "?from=evt_abcd1&through=evt_abcdf", 1))
		checkLine(t, got)
		golden(t, "digest", got)
	})
}

// checkLine holds for every line: one line of JSON that fits.
func checkLine(t *testing.T, got []byte) {
	t.Helper()
	body, ended := bytes.CutSuffix(got, []byte("\n"))
	if !ended || bytes.ContainsAny(body, "\n\r\u2028\u2029") {
		t.Errorf("not one line: %q", got)
	}
	if n := units(body); n > maxLine {
		t.Errorf("%d units", n)
	}
	if !json.Valid(body) || !utf8.Valid(body) {
		t.Errorf("no JSON: %s", body)
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got, -update writes it anew):\n%s", path, diff)
	}
}

func FuzzLineOf(f *testing.F) {
	f.Add("text", `{"pages":12}`)
	f.Add("\u2028", `{"a":{"b":[1,2,{"c":"\ud83e\udd80"}]},"a":"x"}`)
	f.Fuzz(func(t *testing.T, text, data string) {
		var object map[string]any
		if !utf8.ValidString(text) || !utf8.ValidString(data) || json.Unmarshal([]byte(data), &object) != nil || object == nil {
			return // the core lets no such occurrence in
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(data)); err != nil {
			t.Fatal(err)
		}
		checkLine(t, lineOf(core.Message{ID: "evt_abcd1", Kind: wake.KindEvent, Text: text, Data: compact.Bytes()}, whole))
	})
}
