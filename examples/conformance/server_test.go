package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/rousetest"
	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

// These tests check what the public suite's scenarios server-stateless,
// tools-list, http-header-validation and caching check, without the suite.

const revision = "2026-07-28"

// serve serves the example with a core of its own.
func serve(t *testing.T) string {
	t.Helper()
	core := rousetest.NewCore(t)
	handler, wake, err := newHandler(wakeshift.WithKey(core.Key), wakeshift.WithCore(core.URL))
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(func() {
		web.Close()
		if err := wake.Close(); err != nil {
			t.Error(err)
		}
	})
	return web.URL + "/mcp"
}

type object = map[string]any

// A request is one of the newest revision, complete unless changed.
type request struct {
	method  string
	params  object
	meta    object            // added to _meta; nil values take a member out
	bare    bool              // no _meta at all
	headers map[string]string // added; empty values take a header out
}

type reply struct {
	status int
	result object
	code   int
	data   object
	id     any
}

func (r request) make(ctx context.Context, t *testing.T, url string) *http.Request {
	t.Helper()
	params := object{}
	for name, value := range r.params {
		params[name] = value
	}
	meta := object{
		"io.modelcontextprotocol/protocolVersion":    revision,
		"io.modelcontextprotocol/clientInfo":         object{"name": "conformance-client", "version": "1.0.0"},
		"io.modelcontextprotocol/clientCapabilities": object{},
	}
	for name, value := range r.meta {
		if meta[name] = value; value == nil {
			delete(meta, name)
		}
	}
	if !r.bare {
		params["_meta"] = meta
	}
	headers := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": revision, "Mcp-Method": r.method}
	for _, name := range []string{"name", "uri"} {
		if value, ok := r.params[name].(string); ok {
			headers["Mcp-Name"] = value
		}
	}
	for name, value := range r.headers {
		headers[name] = value
	}
	body, err := json.Marshal(object{"jsonrpc": "2.0", "id": 7, "method": r.method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	return req
}

// frames reads a response's messages: one object, or those of a stream.
func frames(t *testing.T, response *http.Response) func() (object, bool) {
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	stream := strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
	return func() (frame object, ok bool) {
		for lines.Scan() {
			text, isData := strings.CutPrefix(lines.Text(), "data: ")
			if stream && !isData {
				continue
			}
			if err := json.Unmarshal([]byte(text), &frame); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			return frame, true
		}
		return nil, false
	}
}

// send sends a request and returns its answer. Whatever comes before it must be a
// notification.
func (r request) send(t *testing.T, url string) (got reply, notifications []string) {
	t.Helper()
	response, err := http.DefaultClient.Do(r.make(t.Context(), t, url))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	next := frames(t, response)
	got.status = response.StatusCode
	for {
		frame, ok := next()
		if !ok {
			t.Fatalf("%s: no answer, status %d", r.method, got.status)
		}
		if method, ok := frame["method"].(string); ok {
			if !strings.HasPrefix(method, "notifications/") {
				t.Errorf("%s: the server sent the request %s", r.method, method)
			}
			notifications = append(notifications, method)
			continue
		}
		got.id = frame["id"]
		got.result, _ = frame["result"].(object)
		if failure, ok := frame["error"].(object); ok {
			code, _ := failure["code"].(float64)
			got.code = int(code)
			got.data, _ = failure["data"].(object)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		return got, notifications
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	url := serve(t)
	const version, capabilities = "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"
	follow := object{"name": "follow_board", "arguments": object{"board": "b"}}
	for name, test := range map[string]struct {
		request request
		status  int
		code    int
		data    object
	}{
		"no _meta":            {request{method: "server/discover", bare: true}, 400, -32602, nil},
		"no version":          {request{method: "server/discover", meta: object{version: nil}}, 400, -32602, nil},
		"no capabilities":     {request{method: "server/discover", meta: object{capabilities: nil}}, 400, -32602, nil},
		"another version":     {request{method: "server/discover", meta: object{version: "v999.0.0"}}, 400, -32020, nil},
		"initialize":          {request{method: "initialize"}, 404, -32601, nil},
		"ping":                {request{method: "ping"}, 404, -32601, nil},
		"logging/setLevel":    {request{method: "logging/setLevel"}, 404, -32601, nil},
		"resources/subscribe": {request{method: "resources/subscribe"}, 404, -32601, nil},
		"unknown":             {request{method: "unknown/method"}, 404, -32601, nil},
		"another method":      {request{method: "tools/list", headers: map[string]string{"Mcp-Method": "prompts/list"}}, 400, -32020, nil},
		"a method's case":     {request{method: "tools/list", headers: map[string]string{"Mcp-Method": "TOOLS/LIST"}}, 400, -32020, nil},
		"no method header":    {request{method: "tools/list", headers: map[string]string{"Mcp-Method": ""}}, 400, -32020, nil},
		"another name":        {request{method: "tools/call", params: follow, headers: map[string]string{"Mcp-Name": "wrong"}}, 400, -32020, nil},
		"no name header":      {request{method: "tools/call", params: follow, headers: map[string]string{"Mcp-Name": ""}}, 400, -32020, nil},
		"a missing capability": {request{method: "tools/call", params: object{"name": "test_missing_capability"}}, 400, -32021,
			object{"requiredCapabilities": object{"sampling": object{}}}},
	} {
		got, _ := test.request.send(t, url)
		if got.status != test.status || got.code != test.code || got.id != 7.0 || test.data != nil && !cmp.Equal(test.data, got.data) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	unknown, _ := request{method: "server/discover", meta: object{version: "v999.0.0"},
		headers: map[string]string{"MCP-Protocol-Version": "v999.0.0"}}.send(t, url)
	supported, _ := unknown.data["supported"].([]any)
	if unknown.status != 400 || unknown.code != -32022 || unknown.data["requested"] != "v999.0.0" || !slices.Contains(supported, any(revision)) {
		t.Errorf("an unknown version: %+v", unknown)
	}
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	url := serve(t)
	got, _ := request{method: "server/discover", meta: object{"io.modelcontextprotocol/clientInfo": nil}}.send(t, url)
	capabilities, _ := got.result["capabilities"].(object)
	for _, name := range []string{"tools", "prompts", "resources", "events"} {
		if capabilities[name] == nil {
			t.Errorf("%s are not declared: %v", name, capabilities)
		}
	}
	meta, _ := got.result["_meta"].(object)
	if info, _ := meta["io.modelcontextprotocol/serverInfo"].(object); info["name"] != "conformance" || info["version"] == nil {
		t.Errorf("_meta is %v", meta)
	}
}

// A result that may be kept says for how long, and for whom.
func TestCaching(t *testing.T) {
	t.Parallel()
	url := serve(t)
	for _, r := range []request{{method: "server/discover"}, {method: "tools/list"}, {method: "prompts/list"}, {method: "resources/list"},
		{method: "resources/templates/list"}, {method: "resources/read", params: object{"uri": "notices://all"}}, {method: "events/list"}} {
		got, _ := r.send(t, url)
		ttl, ok := got.result["ttlMs"].(float64)
		if scope := got.result["cacheScope"]; !ok || ttl < 0 || scope != "public" && scope != "private" {
			t.Errorf("%s: ttlMs %v, cacheScope %v", r.method, got.result["ttlMs"], scope)
		}
	}
}

func TestToolsAreListed(t *testing.T) {
	t.Parallel()
	got, _ := request{method: "tools/list"}.send(t, serve(t))
	var names []string
	for _, tool := range got.result["tools"].([]any) {
		tool := tool.(object)
		names = append(names, tool["name"].(string))
		if schema, _ := tool["inputSchema"].(object); tool["description"] == "" || schema["type"] != "object" {
			t.Errorf("%v", tool)
		}
	}
	want := []string{"follow_board", "test_logging_tool", "test_missing_capability", "test_streaming_elicitation", "test_trigger_prompt_change",
		"test_trigger_tool_change", "subscribe_events", "unsubscribe_events", "list_subscriptions"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHeadersAreReadAsHTTPDoes(t *testing.T) {
	t.Parallel()
	url := serve(t)
	params := object{"name": "follow_board", "arguments": object{"board": "b"}}
	for _, headers := range []map[string]string{{"Mcp-Name": "  follow_board  "}, {"Mcp-Method": "", "mcp-method": "tools/call"}} {
		if got, _ := (request{method: "tools/call", params: params, headers: headers}).send(t, url); got.status != 200 || got.code != 0 {
			t.Errorf("%v: %+v", headers, got)
		}
	}
}

func TestLogsOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	url := serve(t)
	call := request{method: "tools/call", params: object{"name": "test_logging_tool"}}
	if _, notifications := call.send(t, url); len(notifications) > 0 {
		t.Errorf("not asked for the log, the server sent %v", notifications)
	}
	call.meta = object{"io.modelcontextprotocol/logLevel": "info"}
	if _, notifications := call.send(t, url); !slices.Equal(notifications, []string{"notifications/message"}) {
		t.Errorf("asked for the log, the server sent %v", notifications)
	}
}

func TestElicitation(t *testing.T) {
	t.Parallel()
	url := serve(t)
	call := request{method: "tools/call", params: object{"name": "test_streaming_elicitation"},
		meta: object{"io.modelcontextprotocol/clientCapabilities": object{"elicitation": object{}}}}
	got, _ := call.send(t, url)
	if asked, _ := got.result["inputRequests"].(object); got.result["resultType"] != "input_required" || asked["name"] == nil {
		t.Fatalf("%+v", got)
	}
	call.params["inputResponses"] = object{"name": object{"action": "accept", "content": object{"name": "Ada"}}}
	got, _ = call.send(t, url)
	content, _ := json.Marshal(got.result["content"])
	if got.result["resultType"] != "complete" || !strings.Contains(string(content), "The name is Ada.") {
		t.Errorf("%+v", got)
	}
}

// A stream that listens is acknowledged first, and told of what it asked for, with
// its id.
func TestListening(t *testing.T) {
	t.Parallel()
	url := serve(t)
	for kind, test := range map[string]struct{ trigger, method string }{
		"toolsListChanged":   {"test_trigger_tool_change", "notifications/tools/list_changed"},
		"promptsListChanged": {"test_trigger_prompt_change", "notifications/prompts/list_changed"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		listen := request{method: "subscriptions/listen", params: object{"notifications": object{kind: true}}}
		response, err := http.DefaultClient.Do(listen.make(ctx, t, url))
		if err != nil {
			t.Fatal(err)
		}
		next := frames(t, response)
		for i, want := range []string{"notifications/subscriptions/acknowledged", test.method} {
			frame, ok := next()
			params, _ := frame["params"].(object)
			meta, _ := params["_meta"].(object)
			if !ok || frame["method"] != want || meta["io.modelcontextprotocol/subscriptionId"] != 7.0 {
				t.Errorf("%s: frame %d is %v, want %s", kind, i, frame, want)
			}
			if i == 0 { // what another kind changes is not told here
				for _, trigger := range []string{"test_trigger_tool_change", "test_trigger_prompt_change"} {
					if trigger != test.trigger {
						request{method: "tools/call", params: object{"name": trigger}}.send(t, url)
					}
				}
				request{method: "tools/call", params: object{"name": test.trigger}}.send(t, url)
			}
		}
		cancel()
		response.Body.Close()
	}
}
