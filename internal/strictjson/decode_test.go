package strictjson_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/strictjson"
)

type span struct{ seconds int }

func (s *span) UnmarshalJSON(data []byte) error {
	if string(data) != `"5m"` {
		return strictjson.Mismatch("a number of seconds or a span such as \"5m\"")
	}
	s.seconds = 300
	return nil
}

type call struct {
	User   string            `json:"user"`
	Tags   []string          `json:"tags"`
	Limit  *int              `json:"limit"`
	Size   uint16            `json:"size"`
	Share  float64           `json:"share"`
	Once   bool              `json:"once"`
	Labels map[string]string `json:"labels"`
	Meta   jsontext.Value    `json:"meta"`
	TTL    span              `json:"ttl"`
	Raw    []byte            `json:"raw"`
	At     time.Time         `json:"at"`
}

type request struct {
	Call call `json:"call"`
}

func TestDecode(t *testing.T) {
	t.Parallel()
	var got request
	err := strictjson.Decode([]byte(`{"call":{"user":"u","USER":"other","tags":["a"],"limit":null,"more":[1],
		"meta":{ "n": 1.0 },"ttl":"5m"}, "else":1}`), strictjson.Limits{}, &got)
	if err != nil {
		t.Fatal(err)
	}
	want := request{Call: call{User: "u", Tags: []string{"a"}, Meta: jsontext.Value(`{ "n": 1.0 }`), TTL: span{300}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(span{})); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeNamesTheField(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"call":{"user":1}}`:               "call.user: must be a string",
		`{"call":{"user":{"a":1}}}`:         "call.user: must be a string",
		`{"call":{"tags":["a",2]}}`:         "call.tags[1]: must be a string",
		`{"call":{"tags":{}}}`:              "call.tags: must be an array",
		`{"call":{"limit":"7"}}`:            "call.limit: must be an integer",
		`{"call":{"limit":1.5}}`:            "call.limit: must be an integer",
		`{"call":{"size":-1}}`:              "call.size: must be an integer that is not negative",
		`{"call":{"share":"x"}}`:            "call.share: must be a number",
		`{"call":{"once":"true"}}`:          "call.once: must be true or false",
		`{"call":{"labels":{"a":{"b":1}}}}`: "call.labels.a: must be a string",
		`{"call":[]}`:                       "call: must be an object",
		`{"call":{"ttl":"6m"}}`:             `call.ttl: must be a number of seconds or a span such as "5m"`,
		`{"call":{"raw":7}}`:                "call.raw: must be a string of base64",
		`{"call":{"raw":"secret!"}}`:        "call.raw: must be a string of base64",
		`{"call":{"at":"secret"}}`:          "call.at: must be a time such as 2026-11-30T12:00:00Z",
		`{"call":{"user":"a","user":"b"}}`:  "call.user: the key is there twice",
		`[]`:                                "must be a JSON object",
	} {
		var into request
		err := strictjson.Decode([]byte(text), strictjson.Limits{}, &into)
		if got := errorText(err); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
		var typed *strictjson.Error
		if !errors.As(err, &typed) {
			t.Errorf("%s: %T is not an *Error", text, err)
		}
	}
}

// FuzzDecode compares with Object: the same is refused, for the same reason, wherever in the struct it is.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"call":{"user":"u","labels":{"a":"b","a":"c"}}}`, `{"call":{"meta":{"n":1e400}}}`, `{"call":{"user":"\ud800"},"x":{"a":1,"\u0061":2}}`,
		`{"call":{"meta":` + nested(64) + `}}`, `{"call":{"user":"a\\\"{[1e999"},"n":[1e999]}`, ` {"call":null}x`, `{"":"\\"}`, `{"a":-1e309}`,
		`null`, `{"call":{"user":"a\"`, `{"call":{},"call":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := strictjson.Limits{MaxBytes: 1 << 12, MaxDepth: 8}
		_, want := strictjson.Object(data, limits)
		var got request
		err := strictjson.Decode(data, limits, &got)
		var typed *strictjson.Error
		if err != nil && !errors.As(err, &typed) {
			t.Fatalf("not an *Error: %v", err)
		}
		if typed != nil && typed.Problem == strictjson.WrongType {
			err = nil
		}
		if diff := cmp.Diff(errorText(want), errorText(err)); diff != "" {
			t.Fatalf("%q: %s", data, diff)
		}
	})
}

func TestDecodeIntoTheWrongThing(t *testing.T) {
	t.Parallel()
	var typed *strictjson.Error
	for _, into := range []any{nil, request{}, (*request)(nil)} {
		err := strictjson.Decode([]byte(`{"call":{}}`), strictjson.Limits{}, into)
		if err == nil || errors.As(err, &typed) {
			t.Errorf("%T: got %v, want an error that is no *Error", into, err)
		}
	}
}
