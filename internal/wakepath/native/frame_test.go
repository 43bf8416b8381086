package native

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
)

// FuzzFrame holds that a frame is obeyed whole, answered with a refusal, or of no stream at all.
func FuzzFrame(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `{`, `{"type":"close","stream":1}`, `{"type":"refuse","stream":9223372036854775807}`, `{"type":"open","stream":-1}`,
		`{"type":"open","stream":1,"call":{},"params":{"name":"n"},"refused":true,"dialect":"final"}`, `{"type":"open","stream":1,"call":null,"params":null}`,
		`{"type":"open","stream":1,"stream":2}`, `{"type":"open","stream":1e3,"call":{},"params":[]}`, `{"Type":"open","STREAM":3,"call":{"meta":{"a":1e999}}}`,
		`{"type":"open","stream":1,"call":{"client":"\ud800"},"params":{}}`, `{"type":7,"stream":1}`, strings.Repeat(`{"params":`, 80) + `1`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := readFrame(text)
		no := refusal.Of(err)
		switch {
		case err == nil && got.Type == "open" && (got.Call == nil || !json.Valid(got.Params) || !json.Valid(text)):
			t.Errorf("%q: %+v", text, got)
		case err != nil && got.Stream > 0 && (no == nil || no.Message == "" || len(no.Message) > 500):
			t.Errorf("%q: answered with %v", text, err)
		}
		if no == nil {
			return
		}
		answer, err := refusedFrame(got.Stream, got.request().dialect().ErrorOf(no))
		if err != nil || !json.Valid(answer) {
			t.Errorf("%q: %s, %v", text, answer, err)
		}
	})
}

func TestFramesOfNotices(t *testing.T) {
	t.Parallel()
	no := refusal.New(refusal.Unsupported, "no").With("feature", "payloadSchema")
	for name, c := range map[string]struct {
		notice  core.NativeNotice
		dialect string
		want    string
	}{
		"active":    {core.NativeNotice{Stream: 7, Kind: core.NoticeActive, Cursor: "c"}, "draft", `{"stream":7,"method":"notifications/events/active","params":{"cursor":"c","truncated":false}}`},
		"a gap":     {core.NativeNotice{Stream: 7, Kind: core.NoticeActive, Cursor: "c", Truncated: true}, "draft", `{"stream":7,"method":"notifications/events/active","params":{"cursor":"c","truncated":true}}`},
		"event":     {core.NativeNotice{Stream: 7, Kind: core.NoticeEvent, Event: json.RawMessage(`{"eventId":"e"}`)}, "draft", `{"stream":7,"method":"notifications/events/event","params":{"eventId":"e"}}`},
		"heartbeat": {core.NativeNotice{Stream: 7, Kind: core.NoticeHeartbeat, Cursor: "c"}, "draft", `{"stream":7,"method":"notifications/events/heartbeat","params":{"cursor":"c"}}`},
		"error": {core.NativeNotice{Stream: 7, Kind: core.NoticeError}, "draft", `{"stream":7,"method":"notifications/events/error",` +
			`"params":{"error":{"code":-32603,"message":"the core failed; trying again later may help"}}}`},
		"terminated": {core.NativeNotice{Stream: 7, Kind: core.NoticeTerminated, Err: no}, "draft", `{"stream":7,"method":"notifications/events/terminated",` +
			`"params":{"error":{"code":-32026,"message":"no","data":{"feature":"payloadSchema"}}}}`},
		"terminated, to ChatGPT": {core.NativeNotice{Stream: 7, Kind: core.NoticeTerminated, Err: no}, "chatgpt", `{"stream":7,"method":"notifications/events/terminated",` +
			`"params":{"error":{"code":-32014,"message":"no","data":{"feature":"payloadSchema"}}}}`},
		"terminated by a fault": {core.NativeNotice{Stream: 7, Kind: core.NoticeTerminated, Err: errors.New("the disk is on fire")}, "final",
			`{"stream":7,"method":"notifications/events/terminated","params":{"error":{"code":-32603,"message":"the core failed; trying again later may help"}}}`},
		"end": {core.NativeNotice{Stream: 7, Kind: core.NoticeEnd}, "draft", `{"stream":7,"end":true}`},
	} {
		d, ok := core.DialectNamed(c.dialect)
		if !ok {
			t.Fatal(c.dialect)
		}
		got, err := frameOf(c.notice, d)
		if diff := cmp.Diff(c.want, string(got)); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}
