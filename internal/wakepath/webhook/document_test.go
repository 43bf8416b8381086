package webhook_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/wakepath/webhook"
)

const documentPath = "/.well-known/mcp-webhook-receiver.json"

// An origin answers challenges wrongly, and requests for its receiver document as it is told.
type origin struct {
	url    string
	sender *webhook.Sender // that trusts its certificate
	asked  *atomic.Int32   // for its document
}

// newOrigin serves until the end of the test. challenge is nil for an answer that is no echo.
func newOrigin(t testing.TB, challenge, document http.HandlerFunc) origin {
	t.Helper()
	if challenge == nil {
		challenge = func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, "welcome")
		}
	}
	asked := new(atomic.Int32)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", challenge)
	mux.HandleFunc("GET "+documentPath, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		document(w, r)
	})
	server := httptest.NewUnstartedServer(mux)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return origin{server.URL, newSender(t, webhook.Options{AllowPrivate: true, RootCAs: pool, Timeout: time.Minute}), asked}
}

// says is a document of that text.
func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// passes fails the test unless the endpoint at a path passes its verification, or fails it as one that can be reached.
func (o origin) passes(t *testing.T, path string, want bool) {
	t.Helper()
	err := o.sender.Verify(t.Context(), target(t, o.url+path))
	if want && err != nil {
		t.Errorf("%s: %v", path, err)
	}
	if !want {
		fails(t, err, webhook.ChallengeFailed)
	}
}

func TestAReceiverDocumentDeclaresPaths(t *testing.T) {
	t.Parallel()
	for document, c := range map[string]struct{ yes, no []string }{
		`{"receivers":["/hooks/"]}`: {[]string{"/hooks/", "/hooks/a", "/hooks/a/b?c=d", "/%68ooks/a"},
			[]string{"", "/", "/hooks", "/hooks-a", "/Hooks/a", "/a/hooks/", "/hooks/../admin", "/hooks/%2e%2e/admin", "/hooks%2fa", "/hooks//a", "/hooks/%252e%252e/admin"}},
		`{"receivers":["/hooks"]}`:                    {[]string{"/hooks", "/hooks/", "/hooks/a", "/hooks?a=b"}, []string{"/", "/hooks-a", "/hook"}},
		`{"receivers":["/a","/b/c"]}`:                 {[]string{"/a", "/b/c/d"}, []string{"/b", "/c"}},
		`{"receivers":["/"]}`:                         {[]string{"", "/", "/a/b"}, []string{"//a"}},
		`{"receivers":["/a%20b"]}`:                    {[]string{"/a%20b", "/a%20b/c"}, []string{"/a", "/a+b"}},
		`{"version":2,"receivers":["/a"],"more":{}} `: {[]string{"/a"}, []string{"/b"}},
		// Entries that are no paths count for nothing, and spoil no others.
		`{"receivers":["","a","https://a.example/a","//127.0.0.1/a","/a?b","/a#b","/a/../b","/a//b","/%zz","/a;b","/b"]}`: {
			[]string{"/b"}, []string{"/", "/a", "/a/b", "/a?b", "/a/../b", "/a/a"}},
		`{"receivers":[]}`:                       {nil, []string{"/", "/a"}},
		`{"receivers":null}`:                     {nil, []string{"/", "/a"}},
		`{}`:                                     {nil, []string{"/", "/a"}},
		`{"receivers":"/a"}`:                     {nil, []string{"/", "/a"}},
		`{"receivers":["/a",7]}`:                 {nil, []string{"/a"}},
		`{"receivers":["/a"],"receivers":["/"]}`: {nil, []string{"/", "/a"}},
		`["/a"]`:                                 {nil, []string{"/a"}},
	} {
		t.Run(document, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t, nil, says(document))
			for _, path := range c.yes {
				o.passes(t, path, true)
			}
			for _, path := range c.no {
				o.passes(t, path, false)
			}
		})
	}
}

func TestAReceiverDocumentDeclaresSoManyPaths(t *testing.T) {
	t.Parallel()
	var paths []string
	for i := range 1001 {
		paths = append(paths, fmt.Sprintf("/%d", i+1))
	}
	text, err := json.Marshal(map[string]any{"receivers": paths})
	if err != nil {
		t.Fatal(err)
	}
	o := newOrigin(t, nil, says(string(text)))
	o.passes(t, "/1", true)
	o.passes(t, "/1000", true)
	o.passes(t, "/1001", false)
}

// Each of these would declare the path, were it a document.
func TestWhatIsAReceiverDocument(t *testing.T) {
	t.Parallel()
	const declares = `{"receivers":["/a"]}`
	const most = 64 << 10
	with := func(status int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, declares)
		}
	}
	for name, c := range map[string]struct {
		document http.HandlerFunc
		want     bool
	}{
		"the document":     {says(declares), true},
		"of another type":  {with(200, "Content-Type", "text/html"), true}, // a static file server may not know better
		"as large as may":  {says(declares + strings.Repeat(" ", most-len(declares))), true},
		"larger":           {says(declares + strings.Repeat(" ", most-len(declares)+1)), false},
		"endless":          {func(w http.ResponseWriter, _ *http.Request) { endless(w, declares) }, false},
		"not JSON":         {says("<!doctype html>" + declares), false},
		"JSON and more":    {says(declares + declares), false},
		"nothing":          {says(""), false},
		"not found":        {with(404), false},
		"forbidden":        {with(403), false},
		"a fault":          {with(500), false},
		"created":          {with(201), false},
		"moved":            {with(301, "Location", "/elsewhere.json"), false},
		"moved for a time": {with(307, "Location", "/elsewhere.json"), false},
		"half of it": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, declares)
		}, false},
		"broken off": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t, nil, c.document)
			o.passes(t, "/a", c.want)
			if n := o.asked.Load(); n != 1 {
				t.Errorf("it was asked for its document %d times", n)
			}
		})
	}
}

// endless writes until its reader has gone.
func endless(w http.ResponseWriter, text string) {
	_, err := io.WriteString(w, text)
	for err == nil {
		_, err = io.WriteString(w, strings.Repeat(" ", 1024))
	}
}

// A document that moved is not followed, whatever is there.
func TestAReceiverDocumentIsNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := newOrigin(t, nil, says(`{"receivers":["/"]}`))
	o := newOrigin(t, nil, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.url+documentPath, http.StatusFound)
	})
	o.passes(t, "/a", false)
	if n := elsewhere.asked.Load(); n != 0 {
		t.Errorf("the other origin was asked %d times", n)
	}
}

// Only who can be reached and does not answer a challenge is asked for a document.
func TestWhenAReceiverDocumentIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		challenge http.HandlerFunc
		want      webhook.Reason
		asked     int32
	}{
		"the challenge was met":  {echo, "", 0},
		"it was met by a 4xx":    {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(400); echo(w, r) }, "", 1},
		"there is no such route": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, "", 1},
		"nobody answered":        {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, webhook.ConnectionRefused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t, c.challenge, says(`{"receivers":["/"]}`))
			err := o.sender.Verify(t.Context(), target(t, o.url+"/a"))
			if c.want != "" {
				fails(t, err, c.want)
			} else if err != nil {
				t.Error(err)
			}
			if n := o.asked.Load(); n != c.asked {
				t.Errorf("it was asked for its document %d times, want %d", n, c.asked)
			}
		})
	}
}

func TestAReceiverDocumentIsAskedForAsDeliveriesAre(t *testing.T) {
	t.Parallel()
	var got *http.Request
	o := newOrigin(t, nil, func(w http.ResponseWriter, r *http.Request) {
		got = r
		_, _ = io.WriteString(w, `{"receivers":["/a"]}`)
	})
	o.passes(t, "/a?key=secret", true)
	if got.RequestURI != documentPath || got.UserAgent() != "Rouse-Webhook/1" || got.Header.Get("Accept") != "application/json" {
		t.Errorf("asked for %s with %v", got.RequestURI, got.Header)
	}
	for name := range got.Header {
		if strings.HasPrefix(name, "Webhook-") || strings.HasPrefix(name, "X-Mcp-") {
			t.Errorf("asked with %s", name)
		}
	}
}

// A document that does not come in time is none: then the challenge that was not met counts.
func TestAReceiverDocumentThatDoesNotCome(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	o := newOrigin(t, nil, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	fails(t, o.sender.Verify(ctx, target(t, o.url+"/a")), webhook.ChallengeFailed)
}

func TestAReceiverDocumentIsRemembered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		header http.Header
		want   int32 // requests for two verifications
	}{
		"nothing said":          {200, http.Header{}, 2},
		"for a minute":          {200, http.Header{"Cache-Control": {"max-age=60"}}, 1},
		"among others":          {200, http.Header{"Cache-Control": {"public, Max-Age=60", "must-revalidate"}}, 1},
		"no time":               {200, http.Header{"Cache-Control": {"max-age=0"}}, 2},
		"not kept":              {200, http.Header{"Cache-Control": {"max-age=60, no-store"}}, 2},
		"asked anew":            {200, http.Header{"Cache-Control": {"no-cache, max-age=60"}}, 2},
		"old already":           {200, http.Header{"Cache-Control": {"max-age=60"}, "Age": {"60"}}, 2},
		"what was not declared": {404, http.Header{"Cache-Control": {"max-age=60"}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t, nil, func(w http.ResponseWriter, _ *http.Request) {
				for name, values := range c.header {
					w.Header()[name] = values
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, `{"receivers":["/a"]}`)
			})
			for range 2 {
				o.passes(t, "/a", c.status == 200)
			}
			if n := o.asked.Load(); n != c.want {
				t.Errorf("it was asked for its document %d times, want %d", n, c.want)
			}
			o.passes(t, "/b", false) // it is not the answer that is remembered
		})
	}
}
