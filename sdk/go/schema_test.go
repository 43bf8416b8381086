package wakeshift_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

func schemaOf(t *testing.T, text string) *jsonschema.Schema {
	t.Helper()
	s := new(jsonschema.Schema)
	if err := json.Unmarshal([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestInferredSchemas(t *testing.T) {
	t.Parallel()
	type inner struct {
		A *int `json:"a"`
	}
	type payload struct {
		Zed     string          `json:"zed" jsonschema:"the last"`
		Plain   int             `json:"plain"`
		Left    string          `json:"left,omitempty"`
		Pointer *inner          `json:"pointer"`
		List    []inner         `json:"list"`
		Names   map[string]int  `json:"names"`
		Any     any             `json:"any"`
		When    time.Time       `json:"when"`
		Raw     json.RawMessage `json:"-"`
	}
	for name, test := range map[string]struct {
		of   reflect.Type
		want string
	}{
		"struct": {reflect.TypeFor[payload](), `{"type":"object","properties":{
			"zed":{"type":"string","description":"the last"},"plain":{"type":"integer"},"left":{"type":"string"},
			"pointer":{"type":"object","properties":{"a":{"type":"integer"}}},
			"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"}}}},
			"names":{"type":"object","additionalProperties":{"type":"integer"}},
			"any":true,"when":{"type":"string"}},
			"required":["any","list","names","plain","when","zed"]}`},
		"pointer": {reflect.TypeFor[*crawl](), `{"type":"object","properties":{"pages":{"type":"integer"}},"required":["pages"]}`},
		"map":     {reflect.TypeFor[map[string]any](), `{"type":"object"}`},
		"empty":   {reflect.TypeFor[struct{}](), `{"type":"object"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := wakeshift.SchemaForm(test.of, nil)
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("schema (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGivenSchemas(t *testing.T) {
	t.Parallel()
	given := `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"x","title":"T","description":"d","type":"object",
		"$defs":{"note":{"type":"object","title":"N","properties":{"of":{"$ref":"#/$defs/id"}}},"id":{"type":"string","examples":["a"]}},
		"properties":{"b":{"$ref":"#/$defs/note","description":"own"},"a":{"type":["string","null"],"default":"x"},
			"title":{"type":"string","enum":["title","default"]},
			"either":{"anyOf":[{"$ref":"#/$defs/id"},{"title":"A number","type":"number"}]}},
		"required":["b","a"],"additionalProperties":false}`
	want := `{"type":"object","properties":{
		"b":{"type":"object","description":"own","properties":{"of":{"type":"string"}}},
		"a":{"type":["string","null"]},"title":{"type":"string","enum":["title","default"]},
		"either":{"anyOf":[{"type":"string"},{"type":"number"}]}},
		"required":["a","b"],"additionalProperties":false}`
	schema := schemaOf(t, given)
	before, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wakeshift.SchemaForm(nil, schema)
	if err != nil {
		t.Fatal(err)
	}
	var wanted map[string]any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
	after, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("the given schema was changed:\n%s", diff)
	}
}

func TestGivenSchemasRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ given, want string }{
		"not an object": {`{"type":"string"}`, "type object"},
		"no type":       {`{"properties":{}}`, "type object"},
		"true":          {`true`, "type object"},
		"other draft":   {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, "2020-12"},
		"remote ref":    {`{"type":"object","properties":{"a":{"$ref":"https://example.com/x"}}}`, "$defs"},
		"unknown ref":   {`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}`, "$defs"},
		"recursive ref": {`{"type":"object","$defs":{"x":{"properties":{"x":{"$ref":"#/$defs/x"}}}},"properties":{"a":{"$ref":"#/$defs/x"}}}`, "recursive"},
		"ref to itself": {`{"type":"object","$defs":{"x":{"$ref":"#/$defs/x"}},"properties":{"a":{"$ref":"#/$defs/x"}}}`, "recursive"},
		"bad pattern":   {`{"type":"object","properties":{"a":{"type":"string","pattern":"("}}}`, "pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := wakeshift.SchemaForm(nil, schemaOf(t, test.given))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want something of %q", err, test.want)
			}
		})
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	type inner struct {
		List []int `json:"list"`
	}
	type payload struct {
		Note  *string        `json:"note"`
		Inner *inner         `json:"inner"`
		Lists []inner        `json:"lists"`
		Names map[string]int `json:"names"`
		Big   int64          `json:"big"`
		Text  string         `json:"text"`
	}
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"nothing set":    {payload{}, `{"big":0,"lists":[],"names":{},"text":""}`},
		"nested":         {payload{Inner: &inner{}, Lists: []inner{{}}}, `{"big":0,"inner":{"list":[]},"lists":[{"list":[]}],"names":{},"text":""}`},
		"exact numbers":  {payload{Big: math.MaxInt64}, `{"big":9223372036854775807,"lists":[],"names":{},"text":""}`},
		"no HTML escape": {payload{Text: "<a&b>"}, `{"big":0,"lists":[],"names":{},"text":"<a&b>"}`},
		"nil pointer":    {(*struct{})(nil), `{}`},
		"nil map":        {map[string]any(nil), `{}`},
		"a null in any":  {map[string]any{"a": nil}, `{"a":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := wakeshift.EncodeFor(test.value, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
}

// What does not fit is named by its field, without its value.
func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	given := `{"type":"object","properties":{
		"name":{"type":"string","maxLength":3},"kind":{"enum":["a","b"]},
		"inner":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},
		"list":{"type":"array","items":{"type":"integer","minimum":0}},
		"null":{"type":["null","string"]}},
		"required":["name"],"additionalProperties":false}`
	for name, test := range map[string]struct {
		value map[string]any
		want  string
	}{
		"missing":         {map[string]any{}, `"name" is missing`},
		"required null":   {map[string]any{"name": nil}, `"name" does not fit the schema (type string)`},
		"too long":        {map[string]any{"name": "secret"}, `"name" does not fit the schema (type string)`},
		"enum":            {map[string]any{"name": "a", "kind": "secret"}, `"kind" does not fit the schema`},
		"nested":          {map[string]any{"name": "a", "inner": map[string]any{"n": "secret"}}, `"inner.n" does not fit the schema (type integer)`},
		"nested, missing": {map[string]any{"name": "a", "inner": map[string]any{}}, `"inner.n" is missing`},
		"element":         {map[string]any{"name": "a", "list": []any{1, -7}}, `"list[1]" does not fit the schema (type integer)`},
		"unknown":         {map[string]any{"name": "a", "secret": 1}, `it does not fit the schema (type object)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := wakeshift.EncodeFor(test.value, schemaOf(t, given))
			if err == nil || err.Error() != test.want {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
	if _, err := wakeshift.EncodeFor(map[string]any{"name": "a", "null": nil}, schemaOf(t, given)); err != nil {
		t.Errorf("a null that is allowed: %v", err)
	}
	if _, err := wakeshift.EncodeFor(map[string]any{"f": math.NaN()}, schemaOf(t, `{"type":"object"}`)); err == nil {
		t.Error("NaN is accepted")
	}
}
