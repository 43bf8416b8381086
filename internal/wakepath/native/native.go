package native

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A Request is one events request as an SDK passed it on.
type Request struct {
	Call    wake.Call
	Params  json.RawMessage // as they came
	Refused bool            // the app's own authorization said no
}

// An Answer is what to pass on: a result or an error, never both.
type Answer struct {
	Result any    `json:"result,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// answer turns an outcome into what is passed on. A fault, as opposed to a refusal, is returned as the error it is.
func answer(call wake.Call, result any, err error) (Answer, error) {
	if err == nil {
		return Answer{Result: result}, nil
	}
	if wire := dialectFor(call).errorOf(err); wire != nil {
		return Answer{Error: wire}, nil
	}
	return Answer{}, err
}

func dialectFor(call wake.Call) dialect {
	if harness.Recognise(call).Harness == harness.ChatGPT {
		return dialects[core.DialectChatGPT]
	}
	return dialects[core.DialectDraft]
}

// params are those of all three methods; each reads what is its.
type params struct {
	name      string
	arguments json.RawMessage
	cursor    *string
	maxEvents int
	maxAge    time.Duration
	ttl       time.Duration // 0: absent, negative: null
	delivery  map[string]json.RawMessage
}

func read(raw json.RawMessage) (params, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return params{}, refusal.New(refusal.BadRequest, "params: must be an object")
	}
	var p params
	var err error
	if p.name, err = text("name", fields["name"]); err != nil {
		return params{}, err
	}
	p.arguments = fields["arguments"]
	if absent(p.arguments) {
		p.arguments = json.RawMessage("{}")
	} else if p.arguments[0] != '{' {
		return params{}, refusal.New(refusal.BadArguments, "arguments: must be an object")
	}
	if c := fields["cursor"]; !absent(c) {
		cursor, err := text("cursor", c)
		if err != nil {
			return params{}, err
		}
		p.cursor = &cursor
	}
	maxEvents, err := whole("maxEvents", fields["maxEvents"])
	if err != nil {
		return params{}, err
	}
	p.maxEvents = int(min(maxEvents, math.MaxInt32))
	if p.maxAge, err = milliseconds("maxAgeMs", fields["maxAgeMs"]); err != nil {
		return params{}, err
	}
	if p.ttl, err = timeToLive(fields); err != nil {
		return params{}, err
	}
	if d := fields["delivery"]; !absent(d) && json.Unmarshal(d, &p.delivery) != nil {
		return params{}, refusal.New(refusal.BadRequest, "delivery: must be an object")
	}
	return p, nil
}

// timeToLive tells an absent ttlMs (0) from null (negative: no end, please).
func timeToLive(fields map[string]json.RawMessage) (time.Duration, error) {
	raw, ok := fields["ttlMs"]
	if ok && absent(raw) {
		return -1, nil
	}
	ttl, err := milliseconds("ttlMs", raw)
	if err == nil && ok {
		ttl = max(ttl, time.Millisecond)
	}
	return ttl, err
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func text(field string, raw json.RawMessage) (string, error) {
	var s string
	if absent(raw) {
		return "", refusal.New(refusal.BadRequest, "%s: is missing", field)
	}
	if json.Unmarshal(raw, &s) != nil {
		return "", refusal.New(refusal.BadRequest, "%s: must be a string", field)
	}
	return s, nil
}

func whole(field string, raw json.RawMessage) (int64, error) {
	if absent(raw) {
		return 0, nil
	}
	var f float64
	if json.Unmarshal(raw, &f) != nil || f != math.Trunc(f) || f < 0 {
		return 0, refusal.New(refusal.BadRequest, "%s: must be a whole number, not below 0", field)
	}
	return int64(min(f, 1<<53)), nil
}

func milliseconds(field string, raw json.RawMessage) (time.Duration, error) {
	ms, err := whole(field, raw)
	const most = int64(math.MaxInt64 / int64(time.Millisecond))
	return time.Duration(min(ms, most)) * time.Millisecond, err
}

// Poll answers events/poll.
func Poll(ctx context.Context, c *core.Core, app wake.App, q Request) (Answer, error) {
	p, err := read(q.Params)
	if err != nil {
		return answer(q.Call, nil, err)
	}
	polled, err := c.Poll(ctx, app, q.of(p), core.Poll{Cursor: p.cursor, MaxEvents: p.maxEvents, MaxAge: p.maxAge})
	return answer(q.Call, polled, err)
}

func (q Request) of(p params) core.Native {
	return core.Native{Call: q.Call, Refused: q.Refused, Name: p.name, Arguments: p.arguments}
}
