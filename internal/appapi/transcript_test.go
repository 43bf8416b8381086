package appapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/credential"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A transcript is an exchange of an app with the core, as it is on the wire.
type transcript struct {
	testing.TB
	caller
	text bytes.Buffer
}

// golden runs an exchange and compares it with its golden file.
func golden(t *testing.T, l *lab, name string, exchange func(s *transcript)) {
	t.Helper()
	s := &transcript{TB: t, caller: l.app}
	exchange(s)
	got := placeholders(s.text.String(), credential.KeyID(l.Key.PublicKey()))
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got, -update writes it anew):\n%s", path, diff)
	}
}

// ask sends a request and writes down what was said.
func (s *transcript) ask(method, path, body string) reply {
	s.Helper()
	got := s.send(s, method, path, body)
	fmt.Fprintf(&s.text, "%s %s\n%s", method, path, indented(s, []byte(body)))
	fmt.Fprintf(&s.text, "→ %d\n%s\n", got.status, indented(s, got.body))
	return got
}

// post is ask for a POST that must be accepted; it gives the answer.
func (s *transcript) post(path, body string) members {
	s.Helper()
	return s.ask("POST", path, body).good(s)
}

func indented(t testing.TB, text []byte) string {
	t.Helper()
	if len(text) == 0 {
		return ""
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String() + "\n"
}

var (
	names = regexp.MustCompile(`wsk_[a-z2-7]{42}|wss_[a-z2-7]{42}|wsv_[a-z2-7]{32}|sub_[a-z2-7]{16,32}|evt_[a-z2-7]{4}[0-9a-z]+|c1\.[a-z2-7]{4}\.[0-9a-z]+|eyJ[\w-]+\.[\w-]+\.[\w-]+|(?:http://)?127\.0\.0\.1:\d+`)
	kinds = []struct{ prefix, word string }{{"wsk_", "session key"}, {"wss_", "stream"}, {"wsv_", "voucher"}, {"sub_", "subscription"},
		{"evt_", "event"}, {"c1.", "cursor"}, {"eyJ", "beacon"}, {"http:", "receiver"}, {"127.", "receiver host"}}
	moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)
	pause  = regexp.MustCompile(`sleep \d`)
)

// placeholders replaces what differs from run to run. The same thing gets the same number.
func placeholders(text, keyID string) string {
	text = strings.ReplaceAll(text, keyID, "‹key id›")
	text = moment.ReplaceAllString(text, "‹time›")
	text = pause.ReplaceAllString(text, "sleep ‹n›")
	known, count := map[string]string{}, map[string]int{}
	return names.ReplaceAllStringFunc(text, func(name string) string {
		if known[name] == "" {
			word := "name"
			for _, kind := range kinds {
				if strings.HasPrefix(name, kind.prefix) {
					word = kind.word
				}
			}
			count[word]++
			known[name] = fmt.Sprintf("‹%s %d›", word, count[word])
		}
		return known[name]
	})
}
