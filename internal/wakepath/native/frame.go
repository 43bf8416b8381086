package native

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/strictjson"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A frame is what an app sends about a stream.
type frame struct {
	Type    string         `json:"type"`
	Stream  int64          `json:"stream"`
	Call    *wake.Call     `json:"call"`
	Params  jsontext.Value `json:"params"`
	Refused bool           `json:"refused"`
	Dialect string         `json:"dialect"`
}

// readFrame reads a frame. A frame that is bad, but says which stream it is about, comes with the refusal to answer with; of any
// other the stream is 0.
func readFrame(text []byte) (f frame, err error) {
	err = strictjson.Decode(text, strictjson.Limits{MaxBytes: maxFrame, MaxDepth: wake.MaxDepth + 2}, &f)
	var bad *strictjson.Error
	switch {
	case errors.As(err, &bad):
		var names struct{ Stream int64 }
		_ = json.Unmarshal(text, &names) // 0 then
		return frame{Type: "open", Stream: names.Stream}, refusal.New(refusal.BadRequest, "%s", bad)
	case err != nil:
		return frame{}, err
	case f.Type != "open":
		return f, nil
	case f.Call == nil:
		return f, refusal.New(refusal.BadRequest, "call: is missing")
	case f.Params == nil:
		return f, refusal.New(refusal.BadRequest, "params: is missing")
	}
	return f, CheckDialect(f.Dialect)
}

func (f frame) request() Request {
	q := Request{Params: json.RawMessage(f.Params), Refused: f.Refused, Dialect: f.Dialect}
	if f.Call != nil {
		q.Call = *f.Call
	}
	return q
}

// refusedFrame answers a stream that is none.
func refusedFrame(stream int64, wire *Error) ([]byte, error) {
	return json.Marshal(struct {
		Stream int64  `json:"stream"`
		Error  *Error `json:"error"`
	}{stream, wire})
}

// methods of the notifications that an SDK passes on.
var methods = map[core.NoticeKind]string{
	core.NoticeActive:     "notifications/events/active",
	core.NoticeEvent:      "notifications/events/event",
	core.NoticeHeartbeat:  "notifications/events/heartbeat",
	core.NoticeError:      "notifications/events/error",
	core.NoticeTerminated: "notifications/events/terminated",
}

// frameOf is what an app is sent of a notice. The dialect is that of the stream.
func frameOf(n core.NativeNotice, d core.Dialect) ([]byte, error) {
	if n.Kind == core.NoticeEnd {
		return fmt.Appendf(nil, `{"stream":%d,"end":true}`, n.Stream), nil
	}
	params := n.Event
	if n.Kind != core.NoticeEvent {
		var err error
		if params, err = json.Marshal(paramsOf(n, d)); err != nil {
			return nil, err
		}
	}
	text := make([]byte, 0, len(params)+96)
	text = fmt.Appendf(text, `{"stream":%d,"method":%q,"params":`, n.Stream, methods[n.Kind])
	return append(append(text, params...), '}'), nil
}

func paramsOf(n core.NativeNotice, d core.Dialect) any {
	switch n.Kind {
	case core.NoticeActive:
		return map[string]any{"cursor": n.Cursor, "truncated": n.Truncated}
	case core.NoticeHeartbeat:
		return map[string]any{"cursor": n.Cursor}
	case core.NoticeTerminated:
		if wire := d.ErrorOf(n.Err); wire != nil {
			return map[string]any{"error": wire}
		}
	}
	return map[string]any{"error": core.Fault()}
}
