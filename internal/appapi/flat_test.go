package appapi_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
)

// reached stands for endpoints that always pass: there is no network on synctest's clock.
type reached struct{}

func (reached) CheckTarget(string, string) error                       { return nil }
func (reached) Host(string) string                                     { return "hook.example:443" }
func (reached) Trusts(string) bool                                     { return false }
func (reached) Verify(context.Context, core.HookTarget) (string, bool) { return "", true }
func (reached) Deliver(context.Context, core.HookTarget, string, []byte) core.HookResult {
	return core.HookResult{Delivered: true}
}

func TestTimesInTheFlatForm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := setup(t, func(o *core.Options) { o.Webhooks = reached{} })
		subscribe := func(path, more string) members {
			return l.app.post(t, "/events/subscribe", `{`+about+`,"delivery":{"url":`+quote("https://hook.example/"+path)+`,"secret":"x"}`+more+`}`)
		}
		for ttl, want := range map[string]time.Duration{
			``:                           24 * time.Hour,
			`,"ttl_ms":3600000`:          time.Hour,
			`,"ttl_ms":9007199254740993`: 7 * 24 * time.Hour,
			`,"ttl_ms":0`:                5 * time.Second,
		} {
			got := subscribe("", ttl)
			if diff := cmp.Diff(time.Now().Add(want).UTC().Format(time.RFC3339Nano), got["refresh_before"]); diff != "" {
				t.Errorf("%s: %s", ttl, diff)
			}
		}
		if got := subscribe("", `,"ttl_ms":null`); got["refresh_before"] != nil {
			t.Errorf("without end: %v", got["refresh_before"])
		}
		start := l.app.post(t, "/events/poll", `{"call":{},"params":{"name":"site.updated","arguments":{"site":"s"}}}`).at("result", "cursor").(string)
		l.app.post(t, "/events/emit", `{"name":"site.updated","arguments":{"site":"s"},"payload":{"pages":1}}`)
		time.Sleep(time.Minute)
		for age, truncated := range map[string]bool{``: false, `,"max_age_ms":90000`: false, `,"max_age_ms":30000`: true, `,"max_age_ms":-1`: false} {
			if got := subscribe(age, `,"cursor":"`+start+`"`+age); got["truncated"] != truncated {
				t.Errorf("%s: %v", age, got)
			}
		}
	})
}
