package appapi_test

import (
	"strings"
	"testing"
)

// A bad is a request that is refused, and how what it is answered with begins: the code, the field, and mostly the rule.
type bad struct{ body, says string }

// A table is what a call refuses, by what is wrong with it.
type table map[string]bad

func TestBadInput(t *testing.T) {
	t.Parallel()
	l := setup(t, withWebhooks(t))
	for _, test := range []struct {
		path   string
		tables []table
	}{
		{"/events/emit", []table{badEmits}},
		{"/event-subscriptions", []table{badSubscriptions}},
		{"/event-subscriptions/unsubscribe", []table{badSubscriptions}},
		{"/event-subscriptions/list", []table{badUsers("")}},
		{"/event-subscriptions/end", []table{badUsers(`,"id":"sub_x"`), badEnds}},
		{"/events/poll", []table{badNative, {"no params": {`{"call":{}}`, "bad_request: params: is missing"}}}},
		{"/events/subscribe", []table{badNative, badWebhooks, badEndpoints(endpoint(t, "/"))}},
		{"/events/unsubscribe", []table{badNative, badWebhooks}},
		{"/topics/subscribe", []table{badTopicSubscriptions}},
		{"/topics/unsubscribe", []table{badUnsubscribes}},
		{"/topics/publish", []table{badPublishes}},
		{"/topics/close", []table{badCloses}},
		{"/topics/annotate", []table{badAnnotates}},
	} {
		t.Run(test.path, func(t *testing.T) {
			for _, table := range test.tables {
				refuses(t, l, test.path, table)
			}
		})
	}
}

// refuses makes the requests and compares what they are refused with.
func refuses(t *testing.T, l *lab, path string, requests table) {
	t.Helper()
	for name, c := range requests {
		if got := l.app.send(t, "POST", path, c.body).says(t); !strings.HasPrefix(got, c.says) {
			t.Errorf("%s: %s\n got %s\nwant %s", path, name, got, c.says)
		}
	}
}

func long(n int) string { return strings.Repeat("x", n) }
