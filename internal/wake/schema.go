package wake

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// allSchemas walks a schema and those inside it.
func allSchemas(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	return func(yield func(*jsonschema.Schema) bool) { walk(s, yield) }
}

func walk(s *jsonschema.Schema, yield func(*jsonschema.Schema) bool) bool {
	if s == nil {
		return true
	}
	if !yield(s) {
		return false
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems, s.ItemsArray,
		{s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems, s.AdditionalProperties, s.PropertyNames,
			s.UnevaluatedProperties, s.Not, s.If, s.Then, s.Else, s.ContentSchema}} {
		for _, sub := range list {
			if !walk(sub, yield) {
				return false
			}
		}
	}
	for _, group := range []map[string]*jsonschema.Schema{s.Properties, s.PatternProperties, s.Defs, s.Definitions,
		s.DependentSchemas, s.DependencySchemas} {
		for _, sub := range group {
			if !walk(sub, yield) {
				return false
			}
		}
	}
	return true
}

func equalTypes(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

func sameNames(a, b []string) bool { return equalTypes(a, b) }

// narrower reports whether some value allowed before is not allowed now. No enum allows everything.
func narrower(was, is []any) bool {
	if len(is) == 0 {
		return false
	}
	if len(was) == 0 {
		return true
	}
	return slices.ContainsFunc(was, func(v any) bool {
		return !slices.ContainsFunc(is, func(w any) bool { return reflect.DeepEqual(v, w) })
	})
}

// typeError words what encoding/json says of a value of the wrong type, without its content.
func typeError(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Sprintf("%s: has the wrong type, %s", wrong.Field, wrong.Value)
	}
	return "malformed"
}
