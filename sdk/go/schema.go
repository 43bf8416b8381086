package wakeshift

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

const draft202012 = "https://json-schema.org/draft/2020-12/schema"

// A schema is one of an event's two: in the form the manifest has, and ready to
// check values against.
type schema struct {
	form    map[string]any // JSON Schema 2020-12, type object
	checker *jsonschema.Resolved
}

// newSchema makes the schema of a Go type, or takes the given one. Either way it
// is brought into the manifest's form: no titles, defaults, examples, $schema or
// $id, $ref inlined, required sorted.
//
// An inferred schema is open to further properties, so that adding a field later
// is no breaking change, and has no null: a pointer is an optional field, a nil
// slice or map an empty one.
func newSchema(t reflect.Type, given *jsonschema.Schema) (*schema, error) {
	inferred := given == nil
	if inferred {
		var err error
		if given, err = infer(t); err != nil {
			return nil, err
		}
	}
	if given.Schema != "" && given.Schema != draft202012 {
		return nil, errors.New("its $schema must be JSON Schema 2020-12")
	}
	form, err := toForm(given)
	if err != nil {
		return nil, err
	}
	if form, err = inline(form, definitions(form), nil); err != nil {
		return nil, err
	}
	tidied, ok := tidy(form, inferred).(map[string]any)
	if !ok || tidied["type"] != "object" {
		return nil, errors.New("it must be of type object")
	}
	delete(tidied, "description") // the event's description says it
	checker, err := compile(tidied)
	if err != nil {
		return nil, err
	}
	return &schema{form: tidied, checker: checker}, nil
}

func infer(t reflect.Type) (*jsonschema.Schema, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
		return nil, fmt.Errorf("%v is neither a struct nor a map: give its schema", t)
	}
	return jsonschema.ForType(t, &jsonschema.ForOptions{})
}

// toForm is the schema as plain JSON values.
func toForm(s *jsonschema.Schema) (form any, err error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return form, json.Unmarshal(data, &form)
}

func compile(form any) (*jsonschema.Resolved, error) {
	data, err := json.Marshal(form)
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

func definitions(form any) map[string]any {
	all := map[string]any{}
	root, _ := form.(map[string]any)
	for _, keyword := range []string{"$defs", "definitions"} {
		found, _ := root[keyword].(map[string]any)
		for name, definition := range found {
			all["#/"+keyword+"/"+name] = definition
		}
	}
	return all
}

// eachSubschema calls change on every schema directly below node and puts what
// it returns in its place.
func eachSubschema(node map[string]any, change func(any) (any, error)) (err error) {
	put := func(into map[string]any, key string) {
		if err == nil {
			into[key], err = change(into[key])
		}
	}
	for keyword, value := range node {
		switch keyword {
		case "properties", "patternProperties", "dependentSchemas":
			named, _ := value.(map[string]any)
			for name := range named {
				put(named, name)
			}
		case "allOf", "anyOf", "oneOf", "prefixItems":
			list, _ := value.([]any)
			for i := range list {
				if err == nil {
					list[i], err = change(list[i])
				}
			}
		case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
			"unevaluatedItems", "unevaluatedProperties":
			put(node, keyword)
		}
	}
	return err
}

// inline replaces every $ref by a copy of what it names.
func inline(form any, definitions map[string]any, open []string) (any, error) {
	node, ok := form.(map[string]any)
	if !ok {
		return form, nil // true or false
	}
	node = clone(node).(map[string]any)
	if ref, ok := node["$ref"].(string); ok {
		definition, known := definitions[ref].(map[string]any)
		switch {
		case !known:
			return nil, errors.New("a $ref must name one of its own $defs")
		case slices.Contains(open, ref):
			return nil, errors.New("a $ref must not be recursive")
		}
		open = append(slices.Clone(open), ref)
		merged := clone(definition).(map[string]any)
		delete(node, "$ref")
		maps.Copy(merged, node)
		node = merged
		if node["$ref"] != nil {
			return inline(node, definitions, open)
		}
	}
	delete(node, "$defs")
	delete(node, "definitions")
	err := eachSubschema(node, func(sub any) (any, error) { return inline(sub, definitions, open) })
	return node, err
}

func clone(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, v := range value {
			out[key] = clone(v)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = clone(v)
		}
		return out
	}
	return value
}

// tidy changes an inlined schema into the manifest's form, in place.
func tidy(form any, inferred bool) any {
	node, ok := form.(map[string]any)
	if !ok {
		return form
	}
	for _, keyword := range []string{"$schema", "$id", "$comment", "title", "default", "examples"} {
		delete(node, keyword)
	}
	if inferred {
		tidyInferred(node)
	}
	if required, ok := node["required"].([]any); ok {
		slices.SortFunc(required, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	_ = eachSubschema(node, func(sub any) (any, error) { return tidy(sub, inferred), nil })
	return node
}

func tidyInferred(node map[string]any) {
	switch more := node["additionalProperties"].(type) {
	case bool:
		delete(node, "additionalProperties")
	case map[string]any:
		if len(more) == 0 {
			delete(node, "additionalProperties")
		}
	}
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	required = slices.DeleteFunc(required, func(name any) bool {
		property, _ := properties[name.(string)].(map[string]any)
		kind, nullable := withoutNull(property["type"])
		return nullable && kind != "array"
	})
	if len(required) == 0 {
		delete(node, "required")
	} else {
		node["required"] = required
	}
	if kind, nullable := withoutNull(node["type"]); nullable {
		node["type"] = kind
	}
}

// withoutNull is the type that a ["null", type] allows besides null.
func withoutNull(kind any) (string, bool) {
	kinds, _ := kind.([]any)
	if len(kinds) != 2 || kinds[0] != "null" {
		return "", false
	}
	name, ok := kinds[1].(string)
	return name, ok
}
