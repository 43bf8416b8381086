package native_test

import (
	"encoding/json"
	"testing"

	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/wakepath/native"
)

// FuzzParams asks with whatever params: there is always a result or an error in the client's dialect, which is never the core's
// fault.
func FuzzParams(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, about(``), about(`,"cursor":"c1.aaaa.0","maxEvents":1`), about(by("https://hook.example/", secret)),
		about(`,"delivery":{"mode":"poll"}`), `{"name":"crawl.finished","arguments":{"job":"j","wakeshift_voucher":"wsv_x"}}`,
		`{"name":"site.updated","arguments":{"site":1e99}}`, `{"name":"site.updated","arguments":{"site":"\u0000"},"maxAgeMs":1}`,
	} {
		f.Add([]byte(seed))
	}
	b := coretest.New(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		for dialect, call := range clients {
			for _, ask := range []method{native.Poll, native.Subscribe, native.Unsubscribe} {
				got := request(t, b, ask, native.Request{Call: call, Params: raw})
				text, err := json.Marshal(got)
				if err != nil || got.Error != nil && (got.Error.Code == -32603 || got.Error.Message == "" || len(text) > 2000) {
					t.Errorf("%s: %q: %s, %v", dialect, raw, text, err)
				}
			}
		}
	})
}
