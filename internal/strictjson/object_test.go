package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/strictjson"
)

func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
}

func TestObjectAccepts(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":              `{}`,
		"white space around": " \t\r\n{} \n",
		"all kinds":          `{"a":[1,-0,1.5e3,true,false,null,"x",{}]}`,
		"NUL in a string":    `{"a":"x\u0000y"}`,
		"surrogate pair":     `{"a":"\ud83d\ude00"}`,
		"line separator":     "{\"a\":\"\u2028\"}",
		"largest double":     `{"a":1.7976931348623157e308}`,
		"underflow":          `{"a":1e-400}`,
		"309 digits":         `{"a":1` + strings.Repeat("0", 308) + `}`,
		"same key elsewhere": `{"a":{"b":1},"c":{"b":1}}`,
		"keys by case":       `{"a":1,"A":2}`,
		"64 levels":          nested(64),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := strictjson.Object([]byte(text), strictjson.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimSpace(text), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestObjectRefuses(t *testing.T) {
	t.Parallel()
	type problem = strictjson.Error
	for name, c := range map[string]struct {
		text string
		want problem
		says string
	}{
		"nothing":               {"", problem{Problem: strictjson.Incomplete}, "the JSON ends too early, at byte 0"},
		"white space":           {"  ", problem{Problem: strictjson.Incomplete, Offset: 2}, "the JSON ends too early, at byte 2"},
		"array":                 {"[1]", problem{Problem: strictjson.NotObject}, "must be a JSON object"},
		"string":                {`"a"`, problem{Problem: strictjson.NotObject}, "must be a JSON object"},
		"null":                  {"null", problem{Problem: strictjson.NotObject}, "must be a JSON object"},
		"byte order mark":       {"\ufeff{}", problem{Problem: strictjson.Malformed}, "not valid JSON at byte 0"},
		"cut off":               {`{"a":{"b":`, problem{Problem: strictjson.Incomplete, Field: "a.b", Offset: 10}, "a.b: the JSON ends too early, at byte 10"},
		"trailing value":        {`{} {}`, problem{Problem: strictjson.Trailing, Offset: 2}, "there is more after the JSON object, at byte 2"},
		"trailing garbage":      {`{}x`, problem{Problem: strictjson.Trailing, Offset: 2}, "there is more after the JSON object, at byte 2"},
		"trailing NUL":          {"{}\x00", problem{Problem: strictjson.Trailing, Offset: 2}, "there is more after the JSON object, at byte 2"},
		"trailing comma":        {`{"a":1,}`, problem{Problem: strictjson.Malformed, Offset: 6}, "not valid JSON at byte 6"},
		"single quotes":         {`{'a':1}`, problem{Problem: strictjson.Malformed, Offset: 1}, "not valid JSON at byte 1"},
		"comment":               {`{/**/}`, problem{Problem: strictjson.Malformed, Offset: 1}, "not valid JSON at byte 1"},
		"NaN":                   {`{"a":NaN}`, problem{Problem: strictjson.Malformed, Field: "a", Offset: 5}, "a: not valid JSON at byte 5"},
		"leading zero":          {`{"a":01}`, problem{Problem: strictjson.Malformed, Offset: 6}, "not valid JSON at byte 6"},
		"control character":     {"{\"a\":\"\x01\"}", problem{Problem: strictjson.Malformed, Field: "a", Offset: 6}, "a: not valid JSON at byte 6"},
		"duplicate":             {`{"a":[{"b":1,"b":1}]}`, problem{Problem: strictjson.Duplicate, Field: "a[0].b", Offset: 13}, "a[0].b: the key is there twice"},
		"duplicate, escaped":    {`{"a":1,"\u0061":1}`, problem{Problem: strictjson.Duplicate, Field: "a", Offset: 7}, "a: the key is there twice"},
		"invalid UTF-8":         {"{\"a\":\"\xff\"}", problem{Problem: strictjson.InvalidUTF8, Field: "a", Offset: 6}, "a: not valid UTF-8 at byte 6"},
		"invalid UTF-8 key":     {"{\"\xc0\x80\":1}", problem{Problem: strictjson.InvalidUTF8, Offset: 2}, "not valid UTF-8 at byte 2"},
		"surrogate as UTF-8":    {"{\"a\":\"\xed\xa0\x80\"}", problem{Problem: strictjson.InvalidUTF8, Field: "a", Offset: 6}, "a: not valid UTF-8 at byte 6"},
		"high surrogate":        {`{"a":"x\ud800y"}`, problem{Problem: strictjson.LoneSurrogate, Field: "a", Offset: 7}, "a: a lone surrogate at byte 7"},
		"low surrogate":         {`{"a":"\uDC00"}`, problem{Problem: strictjson.LoneSurrogate, Field: "a", Offset: 6}, "a: a lone surrogate at byte 6"},
		"two high surrogates":   {`{"a":"\ud800\ud800"}`, problem{Problem: strictjson.LoneSurrogate, Field: "a", Offset: 6}, "a: a lone surrogate at byte 6"},
		"surrogate key":         {`{"\ud800":1}`, problem{Problem: strictjson.LoneSurrogate, Offset: 2}, "a lone surrogate at byte 2"},
		"bad escape":            {`{"a":"\x"}`, problem{Problem: strictjson.Malformed, Field: "a", Offset: 6}, "a: not valid JSON at byte 6"},
		"number too big":        {`{"a":{"b":1e400}}`, problem{Problem: strictjson.NumberTooBig, Field: "a.b", Offset: 10}, "a.b: the number is beyond the range of a double"},
		"negative too big":      {`{"a":[0,-1e309]}`, problem{Problem: strictjson.NumberTooBig, Field: "a[1]", Offset: 8}, "a[1]: the number is beyond the range of a double"},
		"400 digits":            {`{"a":` + strings.Repeat("9", 400) + `}`, problem{Problem: strictjson.NumberTooBig, Field: "a", Offset: 5}, "a: the number is beyond the range of a double"},
		"65 levels":             {nested(65), problem{Problem: strictjson.TooDeep, Field: "a.a.a.a.a.a.a.a…", Offset: 320, Limit: 64}, "a.a.a.a.a.a.a.a…: more than 64 objects and arrays inside one another"},
		"a name with secrets":   {`{"` + strings.Repeat("n", 100) + `":x}`, problem{Problem: strictjson.Malformed, Field: strings.Repeat("n", 40) + "…", Offset: 104}, strings.Repeat("n", 40) + "…: not valid JSON at byte 104"},
		"a name out of letters": {"{\"\\n\\u0000\":x}", problem{Problem: strictjson.Malformed, Field: "??", Offset: 12}, "??: not valid JSON at byte 12"},
		"no name":               {`{"":x}`, problem{Problem: strictjson.Malformed, Field: `""`, Offset: 4}, `"": not valid JSON at byte 4`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := strictjson.Object([]byte(c.text), strictjson.Limits{})
			var got *strictjson.Error
			if !errors.As(err, &got) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if diff := cmp.Diff(c.want, *got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.says, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestObjectLimits(t *testing.T) {
	t.Parallel()
	limits := strictjson.Limits{MaxBytes: 12, MaxDepth: 2}
	for text, want := range map[string]string{
		`{"a":"123"}`:    "",
		`{"a":"1234"}`:   "",
		`{"a":"12345"}`:  "the JSON is longer than 12 bytes",
		`{"a":{}}`:       "",
		`{"a":[[]]}`:     "a[0]: more than 2 objects and arrays inside one another",
		`{"a":"12345"} `: "the JSON is longer than 12 bytes",
	} {
		_, err := strictjson.Object([]byte(text), limits)
		if got := errorText(err); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestCompact(t *testing.T) {
	t.Parallel()
	const text = ` { "é" : "\u00e9\u2028<\/\u0000\t" , "z": [ 1.50e+3 , -0 ], "a": 12345678901234567890123 } `
	object, err := strictjson.Object([]byte(text), strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	before := object.String()
	got, err := strictjson.Compact(object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("{\"é\":\"é\u2028</\\u0000\\t\",\"z\":[1.50e+3,-0],\"a\":12345678901234567890123}", got.String()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, object.String()); diff != "" {
		t.Errorf("the original changed: %s", diff)
	}
	if _, err := strictjson.Compact([]byte(`{"a":`)); err == nil {
		t.Error("half an object was made compact")
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// FuzzObject compares with encoding/json: what is accepted has the same value there, what is called malformed is so there.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":[1,2,{"b":null}]}`, `{"a":1,"a":2}`, `{"a":"\ud83d\ude00\u0000"}`, `{"a":1e400}`, `{"a":-0.0e-5}`, nested(65),
		"{\"a\":\"\xff\"}", ` {"\u0041":"\/\b"} `, `{"a":1}x`, `{"a":`, `[`, "{\"a\":\"\u2028\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		original := bytes.Clone(data)
		object, err := strictjson.Object(data, strictjson.Limits{MaxBytes: 1 << 16})
		if !bytes.Equal(original, data) {
			t.Fatal("the input was changed")
		}
		var refused *strictjson.Error
		if errors.As(err, &refused) {
			switch refused.Problem {
			case strictjson.Malformed, strictjson.Incomplete, strictjson.Trailing:
				if json.Valid(data) {
					t.Fatalf("called %v, but encoding/json takes it: %q", err, data)
				}
			}
			if len(err.Error()) > 1000 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if err != nil {
			t.Fatalf("not an *Error: %v", err)
		}
		compact, err := strictjson.Compact(object)
		if err != nil {
			t.Fatalf("accepted, but not compacted: %v", err)
		}
		if diff := cmp.Diff(numbersKept(t, data), numbersKept(t, compact)); diff != "" {
			t.Fatalf("compacted to another value: %s", diff)
		}
		var floats map[string]any
		if err := json.Unmarshal(object, &floats); err != nil {
			t.Fatalf("accepted, but refused by encoding/json: %v", err)
		}
	})
}

// numbersKept decodes by encoding/json with each number as it is written.
func numbersKept(t *testing.T, data []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("accepted, but refused by encoding/json: %v", err)
	}
	return value
}

func BenchmarkObject(b *testing.B) {
	data := []byte(`{"name":"crawl.finished","arguments":{"job":"j1"},"payload":{"pages":` +
		"[" + strings.Repeat(`{"url":"https://example.com/a","status":200},`, 20) + "{}]" + `},"text":"done"}`)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := strictjson.Object(data, strictjson.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
