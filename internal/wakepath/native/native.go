package native

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A Request is one events request as an SDK passed it on.
type Request struct {
	Call    wake.Call
	Params  json.RawMessage // as they came
	Refused bool            // the app's own authorization said no
	// Dialect is the name of the one to answer in; empty: the one the client is known to speak. [CheckDialect] knows the names.
	Dialect string
}

// An Answer is what to pass on: a result or an error, never both.
type Answer struct {
	Result any    `json:"result,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// An Error is a JSON-RPC error object.
type Error = core.WireError

// CheckDialect refuses the name of a dialect that there is not. The empty name is none and fine.
func CheckDialect(name string) error {
	if _, ok := core.DialectNamed(name); name != "" && !ok {
		return refusal.New(refusal.BadRequest, "dialect: %s, %s or %s", core.DialectDraft, core.DialectChatGPT, core.DialectFinal)
	}
	return nil
}

// dialect is the one to answer in.
func (q Request) dialect() core.Dialect {
	if d, ok := core.DialectNamed(q.Dialect); ok {
		return d
	}
	return core.DialectOf(q.Call)
}

// answer turns an outcome into what is passed on. A fault, as opposed to a refusal, is returned as the error it is.
func (q Request) answer(result any, err error) (Answer, error) {
	if err == nil {
		return Answer{Result: result}, nil
	}
	if wire := q.dialect().ErrorOf(err); wire != nil {
		return Answer{Error: wire}, nil
	}
	return Answer{}, err
}

// params are those of all methods; each reads what is its.
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
		return q.answer(nil, err)
	}
	polled, err := c.Poll(ctx, app, q.of(p), core.Poll{Cursor: p.cursor, MaxEvents: p.maxEvents, MaxAge: p.maxAge})
	return q.answer(polled, err)
}

func (q Request) of(p params) core.Native {
	return core.Native{Call: q.Call, Refused: q.Refused, Name: p.name, Arguments: p.arguments}
}
