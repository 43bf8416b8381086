package wake

import (
	"encoding/json"
	"slices"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"
)

const typesAlone = `{"type":"object","description":"d","properties":{"n":{"type":"integer","title":"N"},"s":{"type":"string"},
	"f":{"type":"number"},"b":{"type":"boolean"},"z":{"type":"null"},"l":{"type":"array"},"o":{"type":"object"},"any":{}},"required":["n"]}`

func TestPlainShapes(t *testing.T) {
	t.Parallel()
	for schema, plain := range map[string]bool{
		typesAlone:          true,
		`{"type":"object"}`: true,
		`{"type":"object","additionalProperties":false}`:                                                       false,
		`{"type":"object","minProperties":1}`:                                                                  false,
		`{"type":"object","$defs":{"a":{}}}`:                                                                   false,
		`{"type":"object","properties":{"a":{"type":["string","null"]}}}`:                                      false,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"x"}}}`:                                 false,
		`{"type":"object","properties":{"a":{"enum":[1]}}}`:                                                    false,
		`{"type":"object","properties":{"a":{"const":null}}}`:                                                  false,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`:                      false,
		`{"type":"object","properties":{"a":{"type":"object","required":["b"]}}}`:                              false,
		`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}`:          false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`:            false,
		`{"type":"object","properties":{"a":false}}`:                                                           false,
		`{"type":"object","dependentRequired":{"a":["b"]},"properties":{"a":{"type":"string"}},"required":[]}`: false,
	} {
		s, err := parseShape(json.RawMessage(schema))
		if err != nil {
			t.Errorf("%s: %v", schema, err)
		} else if s.plain != plain {
			t.Errorf("%s is plain: %v", schema, s.plain)
		}
	}
}

// FuzzPlainShape compares the check of a plain shape with the validator's.
func FuzzPlainShape(f *testing.F) {
	s, err := parseShape(json.RawMessage(typesAlone))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		`{}`, `{"n":1}`, `{"n":1.0,"s":"","f":1,"b":false,"z":null,"l":[],"o":{},"any":[1]}`, `{"n":1.5}`, `{"n":1e300,"f":1e-9}`, `{"n":null}`,
		`{"n":-0,"s":null}`, `{"n":9007199254740993,"l":{}}`, `{"n":1,"o":[]}`, `{"n":1,"z":0}`, `{"n":1,"b":"true"}`, `{"n":1,"more":{"n":"x"}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var object map[string]any
		if jsonv2.Unmarshal([]byte(text), &object) != nil || object == nil {
			return
		}
		problem, err := s.problem(object), s.resolved.Validate(object)
		if (problem == "") != (err == nil) {
			t.Errorf("%s: %q, but the validator says %v", text, problem, err)
		}
	})
}

// FuzzCanonical compares the canonical form with the library's.
func FuzzCanonical(f *testing.F) {
	arguments, err := parseShape(json.RawMessage(`{"type":"object","properties":{"a":{},"b":{},"a_b":{}}}`))
	if err != nil {
		f.Fatal(err)
	}
	e := Event{Name: "e", arguments: arguments}
	for _, seed := range []string{
		`{}`, `{"b":1,"a":0}`, `{"a":"é\u2028\u001f\b\"\\\/<&>"}`, `{"a":-0,"b":-1}`, `{"a_b":999999999999999,"a":true,"b":null}`, `{"b":10000000000000000}`,
		`{"a":1.50}`, `{"a":1e3}`, `{"a":[ 1 ]}`, `{"a":{"z":1,"b":2}}`, `{"a":"😀","b":"\ud83d\ude00"}`, `{"a":1e21,"b":1e-7}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := e.Bind(json.RawMessage(text))
		if err != nil || text == "" || text == "null" { // no arguments
			return
		}
		want, err := jcs.Transform([]byte(text))
		if err != nil {
			t.Fatalf("%s was taken, but the library says %v", text, err)
		}
		if diff := cmp.Diff(string(want), string(got.Canonical)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	})
}

func TestPieces(t *testing.T) {
	t.Parallel()
	for topic, want := range map[string][]piece{
		"ev/a":         {{text: "ev/a"}},
		"ev/a/{b}":     {{text: "ev/a/"}, {argument: "b"}, {}},
		"{a}{b}/c/{a}": {{argument: "a"}, {argument: "b"}, {text: "/c/"}, {argument: "a"}, {}},
	} {
		if got := pieces(topic); !slices.Equal(got, want) {
			t.Errorf("%s: %v", topic, got)
		}
	}
}
