package appapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/wakepath/monitor"
)

// watch runs the command of an addition for a while and gives the lines it printed, blank ones left out.
func watch(t *testing.T, l *lab, text any) (lines []string) {
	t.Helper()
	address := regexp.MustCompile(`u='http://core\.test(/w/[^']+)'`).FindStringSubmatch(text.(string))
	if address == nil {
		t.Fatalf("no command in %q", text)
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	w := httptest.NewRecorder()
	func() {
		defer func() { _ = recover() }() // a stream that does not end by itself is cut so
		monitor.New(l.Core, monitor.Options{}).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, address[1], nil))
	}()
	for line := range strings.Lines(w.Body.String()) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// What an app emits arrives as it was: the literals of numbers, and every character, on one line.
func TestWhatIsEmittedArrivesAsItWas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := setup(t)
		for name, payload := range map[string]string{
			"number literals": `{"pages":1,"a":1.50e+3,"b":-0,"c":12345678901234567890123,"d":0.1,"e":1e308,"f":5e-324,"g":1e-400}`,
			"line separators": `{"pages":1,"note":"a\u2028b\u2029c\u0085d\ne"}`,
			"raw separators":  "{\"pages\":1,\"note\":\"a\u2028b\u2029c\u0085d\"}",
			"NUL":             `{"pages":1,"note":"a\u0000b"}`,
			"markup":          `{"pages":1,"note":"<b>&\"quoted\"\\</b>"}`,
			"other scripts":   `{"pages":1,"note":"🦀👩‍👩‍👧 שלום é e\u0301 \ud83e\udd80"}`,
			"white space":     " {\n\t\"pages\" : 1 , \"list\" : [ 1 , 2 ] } ",
		} {
			text := "Crawl \u2028finished\n<\x00> 🦀"
			made := l.app.post(t, "/event-subscriptions", subscribeJob(`"client":"claude-code"`, "j"))
			l.app.post(t, "/events/emit", `{"name":"crawl.finished","arguments":{"job":"j"},"payload":`+payload+`,"text":`+quote(text)+`}`)
			lines := watch(t, l, made.at("addition", "text"))
			if len(lines) != 1 || strings.ContainsAny(lines[0], "\u2028\u2029\x00") {
				t.Fatalf("%s: lines %q", name, lines)
			}
			var line struct {
				Subject string
				Data    json.RawMessage
			}
			if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
				t.Fatalf("%s: %q: %v", name, lines[0], err)
			}
			if diff := cmp.Diff(text, line.Subject); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if diff := cmp.Diff(withNumbers(t, []byte(payload)), withNumbers(t, line.Data)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	})
}

// withNumbers decodes JSON with its numbers as they are written.
func withNumbers(t *testing.T, text []byte) (value map[string]any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return value
}

// payloadOf is a payload of that many bytes as compact JSON.
func payloadOf(size int) string {
	const around = `{"pages":1,"blob":""}`
	return `{"pages":1,"blob":"` + long(size-len(around)) + `"}`
}

func nested(levels int) string {
	return strings.Repeat(`{"pages":1,"a":`, levels-1) + `{"pages":1}` + strings.Repeat("}", levels-1)
}

func TestThePayloadsLimits(t *testing.T) {
	t.Parallel()
	l := setup(t)
	const most = 262_144
	for name, c := range map[string]struct {
		payload string
		says    string // by emit; empty when it is accepted
	}{
		"the most":                   {payloadOf(most), ""},
		"one byte more":              {payloadOf(most + 1), "bad_payload"},
		"the most, with white space": {strings.Replace(payloadOf(most), ":", " : \n", 1), ""},
		"the most, with escapes":     {strings.ReplaceAll(payloadOf(most), "x", `\u0078`), ""},
		"one more, with escapes":     {strings.ReplaceAll(payloadOf(most+1), "x", `\u0078`), "bad_payload"},
		"one more, in two bytes":     {strings.Replace(payloadOf(most), "x", "é", 1), "bad_payload"},
		"64 levels":                  {nested(64), ""},
		"65 levels":                  {nested(65), "bad_request"},
	} {
		for path, body := range map[string]string{
			"/events/emit":    `{"name":"crawl.finished","arguments":{"job":"j"},"payload":` + c.payload + `}`,
			"/topics/publish": `{"topics":["x"],"event":{"text":"t","data":` + c.payload + `}}`,
		} {
			got := l.app.send(t, "POST", path, body)
			if c.says == "" {
				got.good(t)
			} else if code, message := got.refused(t); string(code) != c.says {
				t.Errorf("%s: %s: %s: %s", path, name, code, message)
			}
		}
	}
}

func TestOneIDCountsOnce(t *testing.T) {
	t.Parallel()
	l := setup(t)
	const atOnce = 50
	made := l.app.post(t, "/event-subscriptions", subscribeJob(`"client":"Cursor"`, "j"))
	body := strings.TrimSuffix(emitJob("j", "once"), "}") + `,"id":"run-1"}`
	var mu sync.Mutex
	count := map[string]int{}
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			got := l.app.post(t, "/events/emit", body)
			mu.Lock()
			defer mu.Unlock()
			count[fmt.Sprint(got["matched"], got["duplicate"])]++
		})
	}
	all.Wait()
	if diff := cmp.Diff(map[string]int{"1 <nil>": 1, "1 true": atOnce - 1}, count); diff != "" {
		t.Error(diff)
	}
	text := l.app.post(t, "/topics/annotate", `{"call":{"client":"Cursor","session":"`+made["session"].(string)+`"}}`)["text"].(string)
	if n := strings.Count(text, "\n- once"); n != 1 {
		t.Errorf("delivered %d times: %s", n, text)
	}
}
