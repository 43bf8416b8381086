package wakeshift

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// encode writes a value as JSON that the core can check against the same schema,
// and checks it. Its errors name a field, never a value.
func (s *schema) encode(value any) (json.RawMessage, error) {
	data, err := encodeJSON(value)
	if err != nil {
		return nil, fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // numbers go out as they were written
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	if tree == nil {
		tree = map[string]any{}
	}
	dropNulls(tree, s.form)
	if data, err = encodeJSON(tree); err != nil {
		return nil, err
	}
	return data, s.check(data)
}

// check checks JSON against the schema. Its errors name a field, never a value.
func (s *schema) check(data json.RawMessage) error {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return errors.New("it cannot be read as JSON")
	}
	if s.checker.Validate(value) == nil {
		return nil
	}
	return errors.New(fault(s.form, value, ""))
}

// dropNulls takes out what Go writes as null and the schema has no null for: a
// nil pointer is an absent field, a nil slice or map an empty one.
func dropNulls(value any, form any) {
	node, _ := form.(map[string]any)
	switch value := value.(type) {
	case map[string]any:
		properties, _ := node["properties"].(map[string]any)
		for name, member := range value {
			property, known := properties[name].(map[string]any)
			if !known {
				dropNulls(member, node["additionalProperties"])
				continue
			}
			if member == nil {
				dropNull(value, name, property["type"], slices.Contains(requiredNames(node), name))
				continue
			}
			dropNulls(member, property)
		}
	case []any:
		for _, element := range value {
			dropNulls(element, node["items"])
		}
	}
}

func dropNull(object map[string]any, name string, kind any, required bool) {
	switch kind := kind.(type) {
	case string:
		switch {
		case kind == "null":
		case !required:
			delete(object, name)
		case kind == "array":
			object[name] = []any{}
		case kind == "object":
			object[name] = map[string]any{}
		}
	case []any:
		if !required && !slices.Contains(kind, any("null")) {
			delete(object, name)
		}
	}
}

func requiredNames(node map[string]any) []string {
	list, _ := node["required"].([]any)
	names := make([]string, 0, len(list))
	for _, name := range list {
		if name, ok := name.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// fault says which field of a refused value does not fit, and what it should be.
func fault(node map[string]any, value any, path string) string {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range requiredNames(node) {
			if _, ok := value[name]; !ok {
				return fmt.Sprintf("%q is missing", join(path, name))
			}
		}
		properties, _ := node["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if member, ok := value[name]; ok {
				if property, misfit := misfits(properties[name], member); misfit {
					return fault(property, member, join(path, name))
				}
			}
		}
	case []any:
		for i, element := range value {
			if items, misfit := misfits(node["items"], element); misfit {
				return fault(items, element, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	text := "it does not fit the schema"
	if path != "" {
		text = fmt.Sprintf("%q does not fit the schema", path)
	}
	if kind, ok := node["type"].(string); ok {
		text += " (type " + kind + ")"
	}
	return text
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// misfits reports whether a value does not fit a schema below the root. Inlined,
// such a schema stands for itself.
func misfits(form any, value any) (map[string]any, bool) {
	node, ok := form.(map[string]any)
	if !ok {
		return nil, false
	}
	checker, err := compile(node)
	return node, err == nil && checker.Validate(value) != nil
}
