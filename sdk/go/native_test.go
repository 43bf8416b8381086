package wakeshift_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

func TestNativeRequestsReachTheCore(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	url := s.serve(t, true, mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	params := map[string]any{
		"name": "site.updated", "arguments": map[string]any{"site": "a.example", "wakeshift_voucher": "wsv_x"},
		"delivery": map[string]any{"mode": "webhook", "url": "https://hooks.example/1", "secret": "whsec_x"},
		"ttlMs":    nil, "cursor": nil, "future": []any{1.5},
	}
	reply := rpc{url: url, method: "events/subscribe", params: params, revision: modern, client: "events-client",
		headers: map[string]string{"X-User": "ada", "User-Agent": "agent/1"}}.send(t)
	if reply.Result["id"] != "native-1" || reply.Result["refreshBefore"] != nil {
		t.Errorf("the reply is %s", reply.Body)
	}
	params["_meta"] = modernMeta("events-client")
	want := map[string]any{
		"params": params,
		"call": map[string]any{"client": "events-client", "client_version": "9.9", "extensions": []any{"x/ext"},
			"user": "ada", "user_agent": "agent/1"},
	}
	if diff := cmp.Diff(want, s.core.seen("/events/subscribe")[0].Body); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// The core's errors pass as they are.
func TestNativeErrorsOfTheCore(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	url := s.serve(t, false, mcp.StreamableHTTPOptions{Stateless: true})
	for name, test := range map[string]struct {
		params map[string]any
		want   rpcError
	}{
		"unknown":    {map[string]any{"name": "no.such", "arguments": map[string]any{"x": 1}}, rpcError{-32023, "NotFound", map[string]any{"from": "core"}}},
		"tools only": {map[string]any{"name": "crawl.finished", "arguments": map[string]any{"job": "j1"}}, rpcError{-32024, "Forbidden", map[string]any{"from": "core"}}},
	} {
		for _, method := range []string{"events/poll", "events/subscribe", "events/unsubscribe"} {
			got := rpc{url: url, method: method, params: test.params, revision: modern, client: "c"}.send(t)
			if got.Status != http.StatusOK || got.Error == nil || !cmp.Equal(test.want, *got.Error) {
				t.Errorf("%s, %s: %d %s", name, method, got.Status, got.Body)
			}
		}
	}
}

func TestNativeParamsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	url := s.serve(t, false, mcp.StreamableHTTPOptions{Stateless: true})
	good := map[string]any{"name": "site.updated", "arguments": map[string]any{"site": "a"}}
	for name, change := range map[string]map[string]any{
		"no name":            {"name": nil},
		"name, number":       {"name": 5},
		"name, object":       {"name": map[string]any{"canary": "canary"}},
		"arguments, string":  {"arguments": "canary"},
		"arguments, list":    {"arguments": []any{"canary"}},
		"arguments, none":    {"arguments": nil},
		"argument, type":     {"arguments": map[string]any{"site": map[string]any{"canary": 1}}},
		"argument, missing":  {"arguments": map[string]any{}},
		"argument, unknown":  {"arguments": map[string]any{"site": "a", "canary": "canary"}},
		"argument, its case": {"arguments": map[string]any{"Site": "canary"}},
		"cursor, number":     {"cursor": 5},
		"cursor, object":     {"cursor": map[string]any{"canary": 1}},
		"maxEvents, string":  {"maxEvents": "canary"},
		"maxEvents, 1.5":     {"maxEvents": 1.5},
		"maxAgeMs, string":   {"maxAgeMs": "canary"},
	} {
		for _, method := range []string{"events/poll", "events/subscribe", "events/unsubscribe"} {
			params := map[string]any{}
			for _, from := range []map[string]any{good, change} {
				for key, value := range from {
					params[key] = value
				}
			}
			got := rpc{url: url, method: method, params: params, revision: modern, client: "c", headers: map[string]string{"Mcp-Name": ""}}.send(t)
			if got.Status != http.StatusBadRequest || got.Error == nil || got.Error.Code != -32602 {
				t.Errorf("%s, %s: %d %s", name, method, got.Status, got.Body)
			}
			if strings.Contains(got.Body, "canary") {
				t.Errorf("%s, %s: the error quotes params: %s", name, method, got.Body)
			}
		}
	}
	if n := len(s.core.seen("")); n != 0 {
		t.Errorf("%d requests reached the core", n)
	}
	for _, more := range []map[string]any{
		{"cursor": nil}, {"cursor": ""}, {"maxEvents": 3, "maxAgeMs": nil}, {"maxEvents": json.Number("3.0")}, {"timeoutMs": 1, "new": map[string]any{"a": 1}},
		{"arguments": map[string]any{"site": "a", "wakeshift_voucher": "wsv_x"}},
	} {
		params := map[string]any{}
		for _, from := range []map[string]any{good, more} {
			for key, value := range from {
				params[key] = value
			}
		}
		if got := (rpc{url: url, method: "events/poll", params: params, revision: modern, client: "c"}).send(t); got.Result == nil {
			t.Errorf("%v: %s", more, got.Body)
		}
	}
}

// A request without params at all must not end the process.
func TestNilParams(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	url := s.serve(t, false, mcp.StreamableHTTPOptions{Stateless: true})
	headers := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": legacy}
	for _, params := range []string{"", `,"params":null`, `,"params":{}`, `,"params":{"_meta":5}`, `,"params":[1]`, `,"params":"x"`} {
		for _, method := range []string{"events/list", "events/poll", "events/subscribe", "events/unsubscribe"} {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q%s}`, method, params)
			got := post(t, url, []byte(body), headers)
			listed := method == "events/list" && params != `,"params":[1]` && params != `,"params":"x"`
			if listed && got.Result["events"] == nil || !listed && (got.Error == nil || got.Error.Code != -32602) {
				t.Errorf("%s: %d %s", body, got.Status, got.Body)
			}
		}
	}
}

func TestAuthorizeNatively(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	var asked []wakeshift.Subscriber
	var subscribed []wakeshift.Subscription[siteArgs]
	def := siteEvent()
	def.Authorize = func(_ context.Context, who wakeshift.Subscriber, a siteArgs) (bool, error) {
		asked = append(asked, who)
		return who.User == "ada" && a.Site == "a.example", nil
	}
	def.OnSubscribe = func(_ context.Context, s wakeshift.Subscription[siteArgs]) { subscribed = append(subscribed, s) }
	define(t, wake, "site.updated", def)
	server := newServer()
	wake.Attach(server, wakeshift.AttachOptions{Identify: headerUser})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	url := serveHTTP(t, wake.Handler(handler, wakeshift.AttachOptions{}))
	for _, user := range []string{"ada", "bob"} {
		for method, refused := range map[string]bool{"events/poll": user == "bob", "events/subscribe": user == "bob", "events/unsubscribe": false} {
			got := rpc{url: url, method: method, revision: modern, client: "c", headers: map[string]string{"X-User": user},
				params: map[string]any{"name": "site.updated", "arguments": map[string]any{"site": "a.example", "wakeshift_voucher": "v"}}}.send(t)
			if isRefused := got.Error != nil && got.Error.Code == -32024; isRefused != refused {
				t.Errorf("%s by %s: %s", method, user, got.Body)
			}
		}
	}
	if len(asked) != 4 || !asked[0].Native || asked[0].Client != "c" {
		t.Errorf("asked about %+v", asked)
	}
	want := []wakeshift.Subscription[siteArgs]{{
		Subscriber: wakeshift.Subscriber{User: "ada", Client: "c", Native: true}, ID: "native-1", Args: siteArgs{"a.example"},
	}}
	if diff := cmp.Diff(want, subscribed); diff != "" {
		t.Errorf("OnSubscribe (-want +got):\n%s", diff)
	}
}

func TestNativeFailures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer answer
		code   int
	}{
		"the core is broken":     {refuse(500, "internal", "canary"), -32603},
		"the key is refused":     {refuse(401, "unauthorized", "canary"), -32603},
		"no result, no error":    {ok(map[string]any{}), -32603},
		"a result of other type": {ok(map[string]any{"result": []any{}}), -32603},
		"what was sent is bad":   {refuse(400, "bad_request", "call.client: at most 200 characters"), -32602},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.core.on(func(r coreRequest) (answer, bool) { return test.answer, r.Path == "/events/poll" })
			url := s.serve(t, false, mcp.StreamableHTTPOptions{Stateless: true})
			got := rpc{url: url, method: "events/poll", revision: modern, client: "c",
				params: map[string]any{"name": "site.updated", "arguments": map[string]any{"site": "a"}}}.send(t)
			if got.Error == nil || got.Error.Code != test.code || strings.Contains(got.Body, "canary") {
				t.Errorf("the reply is %s", got.Body)
			}
		})
	}
}

// Panics of hooks do not end the process, in the native methods too.
func TestNativePanics(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	wake := newWake(t, core)
	define(t, wake, "site.updated", siteEvent())
	server := newServer()
	wake.Attach(server, wakeshift.AttachOptions{Identify: func(context.Context, *wakeshift.Request) wakeshift.Identity { panic("a bug") }})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	url := serveHTTP(t, wake.Handler(handler, wakeshift.AttachOptions{}))
	got := rpc{url: url, method: "events/poll", revision: modern, client: "c",
		params: map[string]any{"name": "site.updated", "arguments": map[string]any{"site": "a"}}}.send(t)
	if got.Error == nil || got.Error.Code != -32603 {
		t.Errorf("the reply is %s", got.Body)
	}
}

func TestNameHeader(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	wrapped := s.serve(t, true, mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	server := s.server()
	bare := serveHTTP(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	sentinel := func(text string) string { return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?=" }
	for value, matches := range map[string]bool{
		"": true, "site.updated": true, " site.updated ": true, sentinel("site.updated"): true, "=?base64?c2l0ZS51cGRhdGVk?=": true,
		"site.updated.not": false, "Site.updated": false, sentinel("site.updatedé"): false, "=?base64?!?=": false, "=?base64?/w?=": false,
	} {
		for where, url := range map[string]string{"wrapped": wrapped, "bare": bare} {
			got := rpc{url: url, method: "events/poll", revision: modern, client: "c", headers: map[string]string{"Mcp-Name": value},
				params: map[string]any{"name": "site.updated", "arguments": map[string]any{"site": "a"}}}.send(t)
			if matches && got.Result == nil || !matches && (got.Error == nil || got.Error.Code != -32020) {
				t.Errorf("%s, %q: %d %s", where, value, got.Status, got.Body)
			}
			if where == "wrapped" && !matches && got.Status != http.StatusBadRequest {
				t.Errorf("%q: HTTP %d", value, got.Status)
			}
		}
	}
}

func FuzzDecodeHeader(f *testing.F) {
	f.Add("site.updated")
	f.Add("=?base64?c2l0ZS51cGRhdGVk?=")
	f.Add("=?base64??=")
	f.Fuzz(func(t *testing.T, value string) {
		decoded, ok := wakeshift.DecodeHeader(value)
		if !ok {
			return
		}
		header := http.Header{"Mcp-Name": {value}}
		if err := wakeshift.CheckNameHeader(header, decoded); err != nil {
			t.Errorf("%q is not its own name: %v", value, err)
		}
		if err := wakeshift.CheckNameHeader(header, decoded+"x"); err == nil {
			t.Errorf("%q is another name too", value)
		}
	})
}
