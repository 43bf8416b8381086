package appapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/rouse-dev/rouse/internal/appapi"
	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
)

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// serve serves the API on a real network; stop closes what the server calls stopping.
func (l *lab) serve() (url string, stop func()) {
	l.Helper()
	stopping := make(chan struct{})
	api := appapi.New(l.Core, appapi.Options{Stopping: stopping})
	var running sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Done()
		api.ServeHTTP(w, r)
	}))
	stop = sync.OnceFunc(func() { close(stopping) })
	l.Cleanup(func() {
		stop()
		http.DefaultClient.CloseIdleConnections()
		server.Close()
		running.Wait() // a hijacked connection is none of the server's
	})
	return server.URL, stop
}

// A line is a connection with native streams, at the app's end.
type line struct {
	testing.TB
	conn *websocket.Conn
}

func (l *lab) connect(url string, by caller) *line {
	l.Helper()
	header := http.Header{"Authorization": {"Bearer " + by.assertion(l)}}
	conn, answer, err := websocket.Dial(l.Context(), url+appapi.Prefix+"/events/streams", &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		l.Fatalf("%v: %+v", err, answer)
	}
	l.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(1 << 20)
	return &line{l.TB, conn}
}

func (l *line) send(text string) {
	l.Helper()
	if err := l.conn.Write(l.Context(), websocket.MessageText, []byte(text)); err != nil {
		l.Fatal(err)
	}
}

// open opens a stream of somebody to what happens to the site s.
func (l *line) open(stream, more string) {
	l.Helper()
	l.send(`{"type":"open","stream":` + stream + `,"call":{"client":"c","user":"ada"},"params":{"name":"site.updated","arguments":{"site":"s"}` + more + `}}`)
}

// text is the next frame as it came.
func (l *line) text() []byte {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	_, text, err := l.conn.Read(ctx)
	if err != nil {
		l.Fatal(err)
	}
	return text
}

// frame is the next one.
func (l *line) frame() (f members) {
	l.Helper()
	text := l.text()
	if err := json.Unmarshal(text, &f); err != nil {
		l.Fatalf("%s: %v", text, err)
	}
	return f
}

// next is the next frame, which must be of that stream and kind.
func (l *line) next(stream float64, kind string) members {
	l.Helper()
	f := l.frame()
	if f["stream"] != stream || f["method"] != "notifications/events/"+kind {
		l.Fatalf("got %v, want %s of stream %v", f, kind, stream)
	}
	return f
}

// closed is with what the core closed the connection.
func (l *line) closed() (code websocket.StatusCode, reason string) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	for {
		if _, _, err := l.conn.Read(ctx); err != nil {
			if code = websocket.CloseStatus(err); code == -1 {
				l.Fatal(err)
			}
			return code, err.Error()
		}
	}
}

func (l *lab) site(site, pages string) {
	l.Helper()
	if _, err := l.Core.Emit(l.Context(), l.App, core.Emit{Name: "site.updated", Arguments: json.RawMessage(`{"site":"` + site + `"}`),
		Payload: json.RawMessage(`{"pages":` + pages + `}`), Text: site + " changed"}); err != nil {
		l.Fatal(err)
	}
}

func TestAStream(t *testing.T) {
	t.Parallel()
	l := setup(t)
	url, _ := l.serve()
	app := l.connect(url, l.app)
	app.open("1", "")
	if active := app.next(1, "active"); active.at("params", "truncated") != false {
		t.Errorf("%v", active)
	}
	app.open("2", `,"cursor":"h_1"`)
	if active := app.next(2, "active"); active.at("params", "truncated") != true {
		t.Errorf("%v", active)
	}
	l.site("other", "0")
	l.site("s", "7")
	got := map[any]any{}
	for range 2 {
		f := app.frame()
		got[f["stream"]] = f.at("params", "data", "pages")
	}
	if got[1.0] != 7.0 || got[2.0] != 7.0 {
		t.Errorf("%v", got)
	}

	app.send(`{"type":"close","stream":1}`)
	app.send(`{"type":"refuse","stream":2}`)
	if ended := app.next(2, "terminated"); ended.at("params", "error", "code") != -32024.0 {
		t.Errorf("%v", ended)
	}
	if end := app.frame(); end["stream"] != 2.0 || end["end"] != true {
		t.Errorf("%v", end)
	}
	l.site("s", "8")
	app.open("3", "")
	app.next(3, "active")
}

// Whatever cannot be opened is answered, and the rest of the connection goes on.
func TestStreamsThatAreRefused(t *testing.T) {
	t.Parallel()
	l := setup(t)
	url, _ := l.serve()
	app := l.connect(url, l.app)
	for name, c := range map[string]struct {
		frame string
		code  float64
	}{
		"no call":         {`{"type":"open","stream":9,"params":{"name":"site.updated"}}`, -32602},
		"no params":       {`{"type":"open","stream":9,"call":{}}`, -32602},
		"bad params":      {`{"type":"open","stream":9,"call":{},"params":[]}`, -32602},
		"bad arguments":   {`{"type":"open","stream":9,"call":{},"params":{"name":"site.updated"}}`, -32602},
		"twice a member":  {`{"type":"open","stream":9,"call":{},"call":{},"params":{"name":"site.updated","arguments":{"site":"s"}}}`, -32602},
		"too large":       {`{"type":"open","stream":9,"call":{},"params":{"name":"site.updated","arguments":{"site":"s"},"x":"` + strings.Repeat("x", 256<<10) + `"}}`, -32602},
		"unknown event":   {`{"type":"open","stream":9,"call":{},"params":{"name":"no.such"}}`, -32023},
		"unknown, to GPT": {`{"type":"open","stream":9,"call":{"client":"openai-mcp"},"params":{"name":"no.such"}}`, -32011},
		"dialect asked":   {`{"type":"open","stream":9,"call":{"client":"openai-mcp"},"dialect":"final","params":{"name":"no.such"}}`, -32023},
		"unknown dialect": {`{"type":"open","stream":9,"call":{},"dialect":"klingon","params":{"name":"site.updated","arguments":{"site":"s"}}}`, -32602},
		"tools only":      {`{"type":"open","stream":9,"call":{},"params":{"name":"crawl.finished","arguments":{"job":"j"}}}`, -32024},
		"the app says no": {`{"type":"open","stream":9,"call":{},"refused":true,"params":{"name":"site.updated","arguments":{"site":"s"}}}`, -32024},
	} {
		app.send(c.frame)
		f := app.frame()
		if f["stream"] != 9.0 || f.at("error", "code") != c.code || f.at("error", "message") == "" {
			t.Errorf("%s: %v, want %v", name, f, c.code)
		}
	}
	app.open("9", "")
	app.next(9, "active")
}

// A program that speaks something else is told so, once.
func TestFramesThatEndTheConnection(t *testing.T) {
	t.Parallel()
	l := setup(t)
	url, _ := l.serve()
	for name, c := range map[string]struct {
		frames []string
		code   websocket.StatusCode
	}{
		"no JSON":        {[]string{`{`}, websocket.StatusPolicyViolation},
		"no stream":      {[]string{`{"type":"close"}`}, websocket.StatusPolicyViolation},
		"stream below 1": {[]string{`{"type":"open","stream":0,"call":{},"params":{}}`}, websocket.StatusPolicyViolation},
		"a stream twice": {[]string{
			`{"type":"open","stream":1,"call":{},"params":{"name":"site.updated","arguments":{"site":"s"}}}`,
			`{"type":"open","stream":1,"call":{},"params":{"name":"site.updated","arguments":{"site":"s"}}}`}, websocket.StatusPolicyViolation},
		"much too large": {[]string{`{"type":"open","stream":1,"x":"` + strings.Repeat("x", 5<<20) + `"}`}, websocket.StatusMessageTooBig},
	} {
		app := l.connect(url, l.app)
		for _, f := range c.frames {
			app.send(f)
		}
		if code, reason := app.closed(); code != c.code {
			t.Errorf("%s: %d %s, want %d", name, code, reason, c.code)
		}
	}
}

func TestWhoMayConnectForStreams(t *testing.T) {
	t.Parallel()
	l := setup(t)
	if got := l.app.send(t, "GET", "/events/streams", "").says(t); got != "bad_request: this call opens a WebSocket and nothing else" {
		t.Error(got)
	}
	if code, _ := l.app.send(t, "POST", "/events/streams", "").refused(t); code != refusal.MethodNotAllowed {
		t.Error(code)
	}
	r := l.app.request(t, t.Context(), "GET", "/events/streams", nil)
	r.Header.Set("Authorization", "Bearer x")
	if code, _ := answered(l.api, r).refused(t); code != refusal.Unauthorized {
		t.Error(code)
	}
}

// A core that stops says so, and a stream that is opened again with its last cursor at the next one misses nothing.
func TestStreamsGoOnAfterTheCoreStopped(t *testing.T) {
	t.Parallel()
	l := setup(t)
	url, stop := l.serve()
	app := l.connect(url, l.app)
	app.open("1", "")
	app.next(1, "active")
	l.site("s", "1")
	cursor := app.next(1, "event").at("params", "cursor").(string)
	stop()
	if code, reason := app.closed(); code != websocket.StatusServiceRestart {
		t.Errorf("closed with %d %s", code, reason)
	}
	l.site("s", "2")
	url, _ = l.serve()
	app = l.connect(url, l.app)
	app.open("1", `,"cursor":`+quote(cursor))
	if active := app.next(1, "active"); active.at("params", "truncated") != false {
		t.Errorf("%v", active)
	}
	l.site("s", "3")
	for _, want := range []float64{2, 3} {
		if got := app.next(1, "event").at("params", "data", "pages"); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// What goes over the connection, as it is on the wire.
func TestStreamsTranscript(t *testing.T) {
	t.Parallel()
	l := setup(t)
	url, _ := l.serve()
	app := l.connect(url, l.app)
	golden(t, l, "streams", func(s *transcript) {
		say := func(frame string) {
			app.send(frame)
			fmt.Fprintf(&s.text, "app: %s\n", frame)
		}
		hear := func(frames int) {
			for range frames {
				fmt.Fprintf(&s.text, "core: %s\n", app.text())
			}
		}
		about := func(call, name, argument, more string) string {
			return `"call":` + call + `,"params":{"name":"` + name + `","arguments":{"` + argument + `":"s"}` + more + `}`
		}
		ada, gpt := `{"client":"some-client","user":"ada"}`, `{"client":"openai-mcp"}`
		say(`{"type":"open","stream":1,` + about(ada, "site.updated", "site", "") + `}`)
		hear(1)
		l.site("s", "7")
		hear(1)
		say(`{"type":"refuse","stream":1}`)
		hear(2)
		say(`{"type":"open","stream":2,"refused":true,` + about(ada, "site.updated", "site", "") + `}`)
		hear(1)
		say(`{"type":"open","stream":3,` + about(gpt, "no.such", "site", "") + `}`)
		hear(1)
		say(`{"type":"open","stream":4,"dialect":"final",` + about(gpt, "crawl.finished", "job", "") + `}`)
		hear(1)
		say(`{"type":"open","stream":5,` + about(gpt, "site.updated", "site", `,"cursor":"h_1"`) + `}`)
		hear(1)
		fmt.Fprintln(&s.text, "(the app removes the event)")
		if _, err := l.Core.PutManifest(t.Context(), l.App, json.RawMessage(`{"events":[]}`)); err != nil {
			t.Fatal(err)
		}
		hear(2)
	})
}
