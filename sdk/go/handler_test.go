package wakeshift_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

func TestHandlerLimitsBodies(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Write(body)
	})
	for name, test := range map[string]struct {
		limit, size int64
		status      int
	}{
		"default":           {0, mcp.DefaultMaxRequestBodyBytes, 200},
		"over the default":  {0, mcp.DefaultMaxRequestBodyBytes + 1, 413},
		"own limit":         {10, 10, 200},
		"over the own":      {10, 11, 413},
		"no limit":          {-1, mcp.DefaultMaxRequestBodyBytes + 1, 200},
		"a body of nothing": {10, 0, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler := wake.Handler(echo, wakeshift.AttachOptions{MaxBodyBytes: test.limit})
			body := strings.Repeat("x", int(test.size))
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body)))
			if recorder.Code != test.status || test.status == 200 && recorder.Body.String() != body {
				t.Errorf("HTTP %d with %d bytes", recorder.Code, recorder.Body.Len())
			}
		})
	}
}

func TestHandlerPassesOtherRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	url := s.serve(t, true, mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: HTTP %d", method, response.StatusCode)
		}
	}
	// What it cannot read is the MCP handler's to refuse.
	for _, body := range []string{"", "{", "[]", "7", `{"method":7}`, `{"method":"events/poll","params":[]}`, `{"method":"events/poll"}`} {
		got := post(t, url, []byte(body), map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Name": "x", "MCP-Protocol-Version": legacy,
		})
		if got.Status != http.StatusBadRequest || got.Error != nil && got.Error.Code == -32020 {
			t.Errorf("%q: %d %s", body, got.Status, got.Body)
		}
	}
	unknown := rpc{url: url, method: "events/juggle", revision: modern, client: "c"}.send(t)
	if unknown.Status != http.StatusNotFound || unknown.Error == nil || unknown.Error.Code != -32601 {
		t.Errorf("an unknown method: %d %s", unknown.Status, unknown.Body)
	}
}

func TestHandlerBodyBreaksOff(t *testing.T) {
	t.Parallel()
	wake := newWake(t, startCore(t))
	handler := wake.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("called") }), wakeshift.AttachOptions{})
	recorder := httptest.NewRecorder()
	body := io.MultiReader(strings.NewReader("{"), iotest.ErrReader(errors.New("gone")))
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/mcp", body))
	if recorder.Code != http.StatusBadRequest {
		t.Errorf("HTTP %d", recorder.Code)
	}
}

// A refusal of the handler's own answers the request by its id, whatever kind of
// JSON that is.
func TestHandlerKeepsTheID(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	url := s.serve(t, true, mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	for id, want := range map[string]string{`"id":"a",`: `"id":"a"`, `"id":7,`: `"id":7`, ``: `"id":null`} {
		got := post(t, url, []byte(`{"jsonrpc":"2.0",`+id+`"method":"events/poll","params":{"name":"site.updated"}}`), map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Name": "other",
		})
		if got.Status != http.StatusBadRequest || !strings.Contains(got.Body, want) || got.Error == nil || got.Error.Code != -32020 {
			t.Errorf("%s: %d %s", id, got.Status, got.Body)
		}
	}
}

func FuzzHandler(f *testing.F) {
	core := startCore(f)
	wake := newWake(f, core)
	define(f, wake, "site.updated", siteEvent())
	server := newServer()
	wake.Attach(server, wakeshift.AttachOptions{})
	handler := wake.Handler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}), wakeshift.AttachOptions{})
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"events/list"}`, "")
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"events/poll","params":{"name":"site.updated","arguments":{"site":"a"}}}`, "site.updated")
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"events/list","params":{"cursor":"YWZ0ZXI6c2l0ZS51cGRhdGVk"}}`, "")
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"events/poll","params":null}`, "=?base64?!?=")
	f.Fuzz(func(t *testing.T, body, name string) {
		request := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body)).WithContext(t.Context())
		request.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {legacy}, "Mcp-Name": {name}}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		if recorder.Code >= 500 {
			t.Errorf("HTTP %d: %s", recorder.Code, recorder.Body)
		}
	})
}
