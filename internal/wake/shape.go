package wake

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// A shape is one of an event's two schemas.
type shape struct {
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
	names    []string // of its properties, sorted
	plain    bool     // it asks for types and required properties alone
}

func parseShape(raw json.RawMessage) (*shape, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, fmt.Errorf("must be a JSON Schema object")
	}
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("is no JSON Schema: %w", err)
	}
	if s.Type != "object" {
		return nil, fmt.Errorf(`must be a JSON Schema with "type":"object"`)
	}
	if err := checkTypes(s); err != nil {
		return nil, err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("is no JSON Schema: %w", err)
	}
	return &shape{s, resolved, slices.Sorted(maps.Keys(s.Properties)), isPlain(s)}, nil
}

// isPlain reports whether a schema of an object asks for nothing but its properties' types and that some be there.
func isPlain(s *jsonschema.Schema) bool {
	for _, property := range s.Properties {
		if len(property.Properties) > 0 || len(property.Required) > 0 || !onlyTypes(property) {
			return false
		}
	}
	return onlyTypes(s)
}

// onlyTypes reports whether a schema has no keyword but type, properties, required, and those that constrain nothing.
func onlyTypes(s *jsonschema.Schema) bool {
	rest := *s
	rest.Type, rest.Properties, rest.PropertyOrder, rest.Required = "", nil, nil, nil
	rest.Title, rest.Description = "", ""
	return reflect.ValueOf(rest).IsZero()
}

// problem says what about a value does not fit, naming the field but not its content; empty when it fits.
func (s *shape) problem(object map[string]any) string {
	for _, name := range s.schema.Required {
		if _, ok := object[name]; !ok {
			return name + " is missing"
		}
	}
	for _, name := range s.names {
		want := s.schema.Properties[name].Type
		if got, ok := object[name]; ok && want != "" && !isType(got, want) {
			return fmt.Sprintf("%s must be of type %s", name, want)
		}
	}
	if !s.plain && s.resolved.Validate(object) != nil {
		// The validator's own words repeat the value, which must not reach a log or an error.
		return "does not fit the event's schema"
	}
	return ""
}

func isType(v any, want string) bool {
	switch v := v.(type) {
	case nil:
		return want == "null"
	case bool:
		return want == "boolean"
	case string:
		return want == "string"
	case float64:
		return want == "number" || want == "integer" && v == math.Trunc(v)
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	}
	return false
}

var schemaTypes = map[string]bool{"": true, "null": true, "boolean": true, "object": true, "array": true, "number": true,
	"string": true, "integer": true}

// checkTypes refuses type names that JSON Schema does not have, at any depth.
func checkTypes(s *jsonschema.Schema) error {
	for sub := range allSchemas(s) {
		for _, t := range append([]string{sub.Type}, sub.Types...) {
			if !schemaTypes[t] {
				return fmt.Errorf("is no JSON Schema: there is no type %s", Quote(t))
			}
		}
	}
	return nil
}

func (s *shape) breaks(next *shape, arguments bool) string {
	for name, was := range s.schema.Properties {
		is := next.schema.Properties[name]
		switch {
		case is == nil:
			return name + " was removed"
		case is.Type != was.Type || !equalTypes(is.Types, was.Types):
			return name + " has another type"
		case arguments && narrower(was.Enum, is.Enum):
			return name + " allows fewer values"
		}
	}
	if arguments && !sameNames(s.schema.Required, next.schema.Required) {
		return "other ones are required"
	}
	return ""
}
