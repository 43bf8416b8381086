package native

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/refusal"
)

// good are params that say no more than they must.
func good() params { return params{name: "n", arguments: json.RawMessage("{}")} }

func TestReadParams(t *testing.T) {
	t.Parallel()
	with := func(change func(*params)) params {
		p := good()
		change(&p)
		return p
	}
	cursor := func(text string) params { return with(func(p *params) { p.cursor = &text }) }
	ttl := func(d time.Duration) params { return with(func(p *params) { p.ttl = d }) }
	age := func(d time.Duration) params { return with(func(p *params) { p.maxAge = d }) }
	events := func(n int) params { return with(func(p *params) { p.maxEvents = n }) }
	const longest = time.Duration(math.MaxInt64/int64(time.Millisecond)) * time.Millisecond
	for text, want := range map[string]params{
		`{"name":"n"}`:                                good(),
		`{"name":"n","more":[1]}`:                     good(),
		`{"name":"n","NAME":"N","Cursor":7}`:          good(),
		`{"name":"n","arguments":null}`:               good(),
		`{"name":"n","arguments":{}}`:                 good(),
		`{"name":"n","arguments": {"a" : 1.50}}`:      with(func(p *params) { p.arguments = json.RawMessage(`{"a" : 1.50}`) }),
		`{"name":"n","cursor":null}`:                  good(),
		`{"name":"n","cursor":""}`:                    cursor(""),
		`{"name":"n","cursor":"c"}`:                   cursor("c"),
		`{"name":"n","maxEvents":null}`:               good(),
		`{"name":"n","maxEvents":0}`:                  good(),
		`{"name":"n","maxEvents":-0}`:                 good(),
		`{"name":"n","maxEvents":1.0}`:                events(1),
		`{"name":"n","maxEvents":5e2}`:                events(500),
		`{"name":"n","maxEvents":1e300}`:              events(math.MaxInt32),
		`{"name":"n","maxAgeMs":null}`:                good(),
		`{"name":"n","maxAgeMs":0}`:                   good(),
		`{"name":"n","maxAgeMs":300000}`:              age(5 * time.Minute),
		`{"name":"n","maxAgeMs":1e300}`:               age(longest),
		`{"name":"n","ttlMs":null}`:                   ttl(-1), // no end, please
		`{"name":"n","ttlMs":0}`:                      ttl(time.Millisecond),
		`{"name":"n","ttlMs":3600000}`:                ttl(time.Hour),
		`{"name":"n","ttlMs":9007199254740993}`:       ttl(longest),
		`{"name":"n","ttlMs":1e300}`:                  ttl(longest),
		`{"name":"n","delivery":null}`:                good(),
		`{"name":"n","delivery":{}}`:                  with(func(p *params) { p.delivery = map[string]json.RawMessage{} }),
		`{"name":"n","delivery":{"mode":7,"x":null}}`: with(func(p *params) { p.delivery = map[string]json.RawMessage{"mode": []byte("7"), "x": []byte("null")} }),
	} {
		got, err := read(json.RawMessage(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(params{})); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestReadBadParams(t *testing.T) {
	t.Parallel()
	const (
		whole = "must be a whole number, not below 0"
		list  = "bad_request: params: must be an object"
	)
	for text, want := range map[string]string{
		``:            list,
		`{`:           list,
		`[]`:          list,
		`7`:           list,
		`"x"`:         list,
		`null`:        "bad_request: name: is missing",
		`{}`:          "bad_request: name: is missing",
		`{"name":"n"`: list,

		`{"name":null}`:                           "bad_request: name: is missing",
		`{"name":7}`:                              "bad_request: name: must be a string",
		`{"name":["n"]}`:                          "bad_request: name: must be a string",
		`{"name":"n","arguments":[]}`:             "bad_arguments: arguments: must be an object",
		`{"name":"n","arguments":"{}"}`:           "bad_arguments: arguments: must be an object",
		`{"name":"n","arguments":false}`:          "bad_arguments: arguments: must be an object",
		`{"name":"n","cursor":7}`:                 "bad_request: cursor: must be a string",
		`{"name":"n","cursor":{"c":1}}`:           "bad_request: cursor: must be a string",
		`{"name":"n","maxEvents":"10"}`:           "bad_request: maxEvents: " + whole,
		`{"name":"n","maxEvents":-1}`:             "bad_request: maxEvents: " + whole,
		`{"name":"n","maxEvents":1.5}`:            "bad_request: maxEvents: " + whole,
		`{"name":"n","maxEvents":true}`:           "bad_request: maxEvents: " + whole,
		`{"name":"n","maxEvents":[]}`:             "bad_request: maxEvents: " + whole,
		`{"name":"n","maxEvents":1e400}`:          "bad_request: maxEvents: " + whole,
		`{"name":"n","maxAgeMs":"5m"}`:            "bad_request: maxAgeMs: " + whole,
		`{"name":"n","maxAgeMs":-5}`:              "bad_request: maxAgeMs: " + whole,
		`{"name":"n","ttlMs":"never"}`:            "bad_request: ttlMs: " + whole,
		`{"name":"n","ttlMs":-1}`:                 "bad_request: ttlMs: " + whole,
		`{"name":"n","ttlMs":0.5}`:                "bad_request: ttlMs: " + whole,
		`{"name":"n","delivery":"https://hook/"}`: "bad_request: delivery: must be an object",
		`{"name":"n","delivery":[]}`:              "bad_request: delivery: must be an object",
		`{"name":"n","delivery":0}`:               "bad_request: delivery: must be an object",
	} {
		if got, err := read(json.RawMessage(text)); err == nil || err.Error() != want || refusal.Of(err) == nil {
			t.Errorf("%s: %+v, %v, want %s", text, got, err, want)
		}
	}
}

func TestTheModeOfADelivery(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                      "webhook",
		`{"mode":null}`:           "webhook",
		`{"mode":"webhook"}`:      "webhook",
		`{"mode":"web\u0068ook"}`: "webhook",
		`{"mode":"poll"}`:         "poll",
		`{"mode":""}`:             "",
		`{"mode":7}`:              "bad_request: delivery.mode: must be a string",
	} {
		p, err := read(json.RawMessage(`{"name":"n","delivery":` + text + `}`))
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.mode()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// FuzzRead holds that what is read is within the bounds that the rest relies on, and what is not is a refusal.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{"name":"n","arguments":{"a":1},"cursor":"c","maxEvents":5e2,"maxAgeMs":1e300,"ttlMs":null,"delivery":{"mode":"webhook"}}`,
		`{"name":"n","ttlMs":0}`, `{"name":"n","ttlMs":-0.0}`, `{"name":"n","maxEvents":9223372036854775808}`, `{"name":"\ud800","arguments":{}}`,
		`{"name":"n","name":7}`, `{"name":"n","arguments":` + strings.Repeat("[", 100) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := read(raw)
		if err != nil {
			if r := refusal.Of(err); r == nil || len(r.Message) > 200 {
				t.Errorf("%q: %v", raw, err)
			}
			return
		}
		if p.arguments[0] != '{' || !json.Valid(p.arguments) || p.maxEvents < 0 || p.maxAge < 0 || p.ttl < -1 {
			t.Errorf("%q: %+v", raw, p)
		}
		if _, err := p.mode(); err != nil && refusal.Of(err) == nil {
			t.Error(err)
		}
	})
}
