//go:build unix

package sdktest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rouse-dev/rouse/rousetest"
)

// refused is a result that says which error of the SDK a program sees.
func refused(kind, code string, status int) map[string]any {
	return map[string]any{"type": kind, "code": code, "status": float64(status)}
}

func refusalsAreTheSDKsTypedErrors(t *testing.T, endpoint string) {
	a := client{name: "claude-code"}.overHTTP(t, endpoint)
	other := client{name: "cursor"}.overHTTP(t, endpoint)
	others := find(t, sessionForm, other.done("watch", about("build.finished", map[string]any{"repo": "r1"})))
	build := map[string]any{"payload": map[string]any{"branch": "main", "failures": 1}}
	for _, c := range []struct {
		name, tool string
		arguments  map[string]any
		want       map[string]any
	}{
		{"a value that does not route", "watch", about("build.finished", map[string]any{"repo": "Not An Id"}), refused("WakeshiftError", "bad_arguments", 400)},
		{"the same when emitting", "emit", about("build.finished", map[string]any{"repo": "Not An Id"}, build), refused("WakeshiftError", "bad_arguments", 400)},
		{"an argument that is missing", "watch", about("build.finished", map[string]any{}), refused("ArgsError", "", 0)},
		{"an argument of another type", "emit", about("build.finished", map[string]any{"repo": 7}, build), refused("ArgsError", "", 0)},
		{"a payload that does not fit", "emit", about("build.finished", map[string]any{"repo": "r1"}, map[string]any{"payload": map[string]any{}}), refused("WakeshiftError", "bad_payload", 400)},
		{"a personal event for nobody", "watch", about("review.requested", map[string]any{"repo": "r1"}), refused("WakeshiftError", "bad_arguments", 400)},
		{"a made-up session", "watch", about("build.finished", map[string]any{"repo": "r1"}, map[string]any{"session_key": "wsk_made_up"}), refused("WakeshiftError", "unknown_session", 404)},
		{"another client's session", "watch", about("build.finished", map[string]any{"repo": "r1"}, map[string]any{"session_key": others}), refused("WakeshiftError", "unknown_session", 404)},
		{"another user's topic", "watch_topic", map[string]any{"topic": "u/bob/ci"}, refused("WakeshiftError", "private_topic", 403)},
		{"a topic with spaces", "publish", map[string]any{"topics": []string{"a b"}, "text": "x"}, refused("WakeshiftError", "bad_request", 400)},
	} {
		t.Run(c.name, func(t *testing.T) {
			expectRefusal(t, a.call(c.tool, c.arguments), c.want)
		})
	}
}

func expectRefusal(t *testing.T, result *mcp.CallToolResult, want map[string]any) {
	t.Helper()
	if diff := cmp.Diff(want, structured(t, result)); diff != "" || !result.IsError {
		t.Errorf("refused (-want +got):\n%s\n%s", diff, text(result))
	}
}

// An event is unknown once the app has told the core so.
func TestAnUnknownEvent(t *testing.T) {
	t.Parallel()
	core := rousetest.NewCore(t)
	a := client{name: "claude-code"}.overStdio(t, core.URL, core.Key)
	asked := map[string]any{"repo": "r1"}
	m := monitoring(t, a.done("watch", about("build.finished", asked)))
	if kept := a.facts("offer_nothing", nil); kept["events"] != 0.0 {
		t.Fatalf("kept: %v", kept)
	}
	if told := m.next(); told.Type != "ended" {
		t.Errorf("the conversation is told %+v", told)
	}
	m.finish()
	want := refused("WakeshiftError", "unknown_event", 404)
	expectRefusal(t, a.call("watch", about("build.finished", asked)), want)
	expectRefusal(t, a.call("emit", about("build.finished", asked, map[string]any{"payload": map[string]any{"branch": "main", "failures": 1}})), want)
	if said := a.call("subscribe_events", about("nothing.such", nil)); !said.IsError || text(said) != "This app offers no event named nothing.such." {
		t.Errorf("an event that was never defined: %s", text(said))
	}
}

func TestTheAppIsTheKeys(t *testing.T) {
	t.Parallel()
	core := rousetest.NewCore(t)
	second := core.NewApp("second")
	a := client{name: "claude-code"}.overStdio(t, core.URL, second.Key)
	want := map[string]any{"id": "second", "name": "second", "app_id": "second"}
	if diff := cmp.Diff(want, a.facts("which_app", nil)); diff != "" {
		t.Errorf("the app (-want +got):\n%s", diff)
	}
}

func TestAWrongCore(t *testing.T) {
	t.Parallel()
	core := rousetest.NewCore(t)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>Hello</html>") }))
	t.Cleanup(page.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, c := range map[string]struct {
		url  string
		want map[string]any
	}{
		"nobody answers": {closed.URL, refused("WakeshiftError", "unreachable", 0)},
		"a web page":     {page.URL, refused("WakeshiftError", "bad_response", 200)},
		"another core":   {rousetest.NewCore(t).URL, refused("WakeshiftError", "unauthorized", 401)},
		"a wrong path":   {core.URL + "/elsewhere", refused("WakeshiftError", "not_found", 404)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := client{name: "claude-code"}.overStdio(t, c.url, core.Key)
			result := a.call("which_app", nil)
			expectRefusal(t, result, c.want)
			if strings.Contains(text(result), core.Key) {
				t.Error("the error repeats the key")
			}
		})
	}
}

func TestAMistypedKeyStopsTheAppAtOnce(t *testing.T) {
	t.Parallel()
	core := rousetest.NewCore(t)
	mistyped := core.Key[:len(core.Key)-1] + "z"
	if mistyped == core.Key {
		mistyped = core.Key[:len(core.Key)-1] + "y"
	}
	command := builds(t, core.URL, mistyped)
	var said bytes.Buffer
	command.Stderr = &said
	if err := command.Run(); err == nil {
		t.Error("the app starts")
	}
	if out := said.String(); !strings.Contains(out, "ValueError: wakeshift: ") || strings.Contains(out, mistyped) {
		t.Errorf("it says: %s", out)
	}
}
