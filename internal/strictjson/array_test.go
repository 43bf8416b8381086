package strictjson_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/strictjson"
)

func TestArray(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`[]`:                              nil,
		" [ {} ,\n[1, 2],\"a,]\", 7.0 ] ": {`{}`, `[1, 2]`, `"a,]"`, `7.0`},
		// What is wrong with an element alone is for whoever reads it.
		`[{"a":1,"a":2},{"b":1e400},{"c":"\ud800"}]`: {`{"a":1,"a":2}`, `{"b":1e400}`, `{"c":"\ud800"}`},
		"[{\"a\":\"\xff\"},{}]":                      {"{\"a\":\"\xff\"}", `{}`},
	} {
		items, err := strictjson.Array([]byte(text), strictjson.Limits{}, 4)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		var got []string
		for _, item := range items {
			got = append(got, string(item))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestArrayRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                    "must be a JSON array",
		`{}`:                  "must be a JSON array",
		`"[]"`:                "must be a JSON array",
		`[1,2,3]`:             "more than 2 elements in the array",
		`[1,2,x`:              "more than 2 elements in the array",
		`[`:                   "the JSON ends too early, at byte 1",
		`[{"a":1}`:            "the JSON ends too early, at byte 8",
		`[{},{"a":{"b":}}]`:   "[1].a: not valid JSON at byte 14",
		`[{},]`:               "not valid JSON at byte 3",
		`[{}}`:                "not valid JSON at byte 3",
		`[] []`:               "there is more after the JSON array, at byte 2",
		`[]x`:                 "there is more after the JSON array, at byte 2",
		`["123456789012345"]`: "the JSON is longer than 17 bytes",
	} {
		_, err := strictjson.Array([]byte(text), strictjson.Limits{MaxBytes: 17}, 2)
		if got := errorText(err); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// FuzzArray compares with encoding/json.
func FuzzArray(f *testing.F) {
	for _, seed := range []string{`[]`, `[{"a":1,"a":2}, 7]`, `[[`, `[1,]`, `[1] x`, "[\"\xff\"]", `["\ud800",{"a":"]"}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := strictjson.Array(data, strictjson.Limits{MaxBytes: 1 << 16}, 1<<16)
		var typed *strictjson.Error
		if err != nil && !errors.As(err, &typed) {
			t.Fatalf("not an *Error: %v", err)
		}
		var want []json.RawMessage
		wrong := json.Unmarshal(data, &want)
		if (err == nil) != (wrong == nil && strictjson.IsArray(data)) {
			t.Fatalf("%q: %v, but encoding/json says %v", data, err, wrong)
		}
		if err != nil {
			return
		}
		if len(items) != len(want) {
			t.Fatalf("%q: %d elements, but encoding/json finds %d", data, len(items), len(want))
		}
		for i := range items {
			if string(items[i]) != string(want[i]) {
				t.Errorf("%q: element %d is %q", data, i, items[i])
			}
		}
	})
}
