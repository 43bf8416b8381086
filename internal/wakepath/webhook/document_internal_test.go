package webhook

import (
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// An address that may not be dialled is not dialled for a document either, even if a challenge got there.
func TestADocumentIsNotFetchedFromAPrivateAddress(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `{"receivers":["/"]}`)
	}))
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	for _, private := range []bool{false, true} {
		sender := New(Options{AllowPrivate: private, RootCAs: pool})
		t.Cleanup(sender.Close)
		if got := sender.isDeclared(t.Context(), server.URL+"/a"); got != private {
			t.Errorf("private addresses allowed %v: declared %v", private, got)
		}
		if n := asked.Load(); (n == 1) != private {
			t.Errorf("private addresses allowed %v: asked %d times", private, n)
		}
	}
}

func TestFreshness(t *testing.T) {
	t.Parallel()
	for control, want := range map[string]time.Duration{
		"": 0, "public": 0, "max-age": 0, "max-age=": 0, "max-age=soon": 0, "max-age=-1": 0, "max-age=1.5": 0, "max-age=99999999999": 0,
		"max-age=0": 0, "max-age=1": time.Second, "MAX-AGE=60": time.Minute, `max-age="60"`: time.Minute, " public ,max-age=60 ": time.Minute,
		"max-age=86400": documentTTL, "max-age=86401": documentTTL, "max-age=2147483647": documentTTL,
		"s-maxage=60": 0, "no-store": 0, "no-store, max-age=60": 0, "max-age=60,no-store": 0, "max-age=60, no-cache": 0, `no-cache="x", max-age=60`: 0,
	} {
		if got := freshness(http.Header{"Cache-Control": {control}}); got != want {
			t.Errorf("%q: %v, want %v", control, got, want)
		}
	}
	for age, want := range map[string]time.Duration{"": time.Minute, "x": time.Minute, "1": 59 * time.Second, "59": time.Second, "60": 0, "3600": 0} {
		if got := freshness(http.Header{"Cache-Control": {"max-age=60"}, "Age": {age}}); got != want {
			t.Errorf("of age %q: %v, want %v", age, got, want)
		}
	}
}

func TestDocumentsAreRememberedWhileTheyAreFresh(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	var known documents
	if _, ok := known.get("https://a.example:443", at); ok {
		t.Error("something is known at first")
	}
	known.put("https://a.example:443", document{[]string{"/a"}, at.Add(time.Minute)}, at)
	for _, c := range []struct {
		origin string
		after  time.Duration
		want   bool
	}{{"https://a.example:443", time.Minute - 1, true}, {"https://a.example:443", time.Minute, false}, {"https://a.example:444", 0, false}} {
		receivers, ok := known.get(c.origin, at.Add(c.after))
		if ok != c.want || ok && receivers[0] != "/a" {
			t.Errorf("%s after %v: %q, %v", c.origin, c.after, receivers, ok)
		}
	}
}

// Of too many, those go first that are of no use any more.
func TestHowManyDocumentsAreRemembered(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	var known documents
	for i := range maxDocuments {
		until := at.Add(time.Hour)
		if i == maxDocuments/2 {
			until = at.Add(time.Minute)
		}
		known.put(fmt.Sprint(i), document{nil, until}, at)
	}
	later := at.Add(2 * time.Minute)
	known.put("new", document{nil, later.Add(time.Hour)}, later)
	for i := range maxDocuments {
		if _, ok := known.get(fmt.Sprint(i), later); ok != (i != maxDocuments/2) {
			t.Errorf("%d is known: %v", i, ok)
		}
	}
	for i := range 10 {
		known.put(fmt.Sprint("another", i), document{nil, later.Add(time.Hour)}, later)
	}
	if n := len(known.known); n != maxDocuments {
		t.Errorf("%d are known, want %d", n, maxDocuments)
	}
}

// FuzzParseDocument looks at the paths that were read with its own eyes.
func FuzzParseDocument(f *testing.F) {
	for _, seed := range []string{`{"receivers":["/hooks/","/a/../b","//c","https://d","/e?f","/%2e%2e/g","/h;i","/%252f"]}`, `{"receivers":[]}`, `{}`, `[]`, `{"receivers":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		receivers, ok := parseDocument(body)
		if !ok && receivers != nil || len(receivers) > maxReceivers || ok && len(body) > maxDocument {
			t.Fatalf("%q: %d paths, %v", body, len(receivers), ok)
		}
		for _, one := range receivers {
			clean := path.Clean(one)
			if !strings.HasPrefix(one, "/") || one != clean && one != clean+"/" || strings.ContainsAny(one, "\\;%\x00") || !within(one, one) {
				t.Fatalf("%q: the path %q", body, one)
			}
		}
	})
}
