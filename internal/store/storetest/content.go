package storetest

import (
	"encoding/json"
	"strings"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// testContent keeps content that a database might have ideas of its own about: it comes back byte for byte.
func testContent(s *suite) {
	app := s.addApp()
	for name, data := range map[string]string{
		"NUL as an escape":          `{"x":"a\u0000b"}`,
		"NUL as it is":              "{\"x\":\"a\x00b\"}",
		"a lone surrogate":          `{"x":"\ud800"}`,
		"a pair of surrogates":      `{"x":"\ud83d\ude00 😀"}`,
		"a number beyond a double":  `{"x":1e400}`,
		"a number with many digits": `{"x":0.1000000000000000055511151231257827021181583404541015625}`,
		"a number's own form":       `{"x":1.0,"y":1E+2,"z":-0}`,
		"a name twice":              `{"x":1,"x":2}`,
		"an order of its own":       `{"b":1,"a":2}`,
		"space":                     "{ \"x\" :\n1 }",
		"not UTF-8":                 "{\"x\":\"\xff\"}",
		"a backslash":               `{"x":"\\\\x41\\'"}`,
		"long":                      `{"x":"` + strings.Repeat("é", 100_000) + `"}`,
	} {
		o := occurrence(app.ID, "topic")
		o.Data, o.Arguments, o.Text = []byte(data), []byte(data), data
		o = s.append(o)
		s.check(func(r store.Reader) { s.same(name, o, got[wake.Occurrence](s)(r.Occurrence(o.Seq))) })
	}
	c := s.addConversation(app.ID)
	sub := s.subscription(c, "topic")
	sub.Arguments = []byte(`{"b":1e400,"a":"\u0000"}`)
	s.change(func(t store.Tx) error { return t.PutSubscription(sub) }, func(r store.Reader) {
		s.same("a subscription by its arguments", sub, got[wake.Subscription](s)(r.SubscriptionOf(c.ID, "topic", sub.Event, sub.Arguments)))
		s.is("by others", store.ErrNotFound, fails(r.SubscriptionOf(c.ID, "topic", sub.Event, json.RawMessage(`{"a":"\u0000","b":1e400}`))))
	})
}
