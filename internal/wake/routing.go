package wake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/gowebpki/jcs"

	"github.com/rouse-dev/rouse/internal/refusal"
)

var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

// checkTemplates refuses a topic or filter that names an argument the event does not have.
func (e *Event) checkTemplates() error {
	plain := placeholder.ReplaceAllString(e.Topic, "x")
	if strings.ContainsAny(plain, "{}") {
		return fmt.Errorf("topic: braces must enclose one argument's name")
	}
	if !strings.HasPrefix(plain, EventTopicPrefix) {
		if err := CheckTopic(plain); err != nil {
			return fmt.Errorf("%s", refusal.Of(err).Message)
		}
	} else if err := CheckString("topic", plain, MaxTopic); err != nil {
		return fmt.Errorf("%s", refusal.Of(err).Message)
	}
	for _, m := range placeholder.FindAllStringSubmatch(e.Topic, -1) {
		if e.arguments.schema.Properties[m[1]] == nil {
			return fmt.Errorf("topic: the event has no argument %s", Quote(m[1]))
		}
	}
	for field, value := range e.Filter {
		if m := placeholder.FindStringSubmatch(value); m != nil && e.arguments.schema.Properties[m[1]] == nil {
			return fmt.Errorf("filter.%s: the event has no argument %s", Quote(field), Quote(m[1]))
		}
	}
	return nil
}

// Arguments are an event's arguments, checked: what a subscription or an emit of it is routed by.
type Arguments struct {
	Canonical json.RawMessage // canonical JSON (RFC 8785): equal arguments are equal bytes
	Topic     string
	Filter    Filter
}

// Bind checks arguments against the event's schema and works out where they lead. raw may be nil: no arguments. Errors are
// bad_arguments.
func (e *Event) Bind(raw json.RawMessage) (Arguments, error) {
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	bad := func(format string, args ...any) (Arguments, error) {
		return Arguments{}, refusal.New(refusal.BadArguments, "arguments for "+e.Name+": "+format, args...)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return bad("must be an object")
	}
	for name := range fields {
		if e.arguments.schema.Properties[name] == nil {
			return bad("the event has no argument %s", Quote(name))
		}
	}
	if problem := e.arguments.problem(raw); problem != "" {
		return bad("%s", problem)
	}
	canonical, err := jcs.Transform(raw)
	if err != nil {
		return bad("must be plain JSON")
	}
	a := Arguments{Canonical: canonical}
	if a.Topic, err = e.route(fields); err != nil {
		return bad("%s", err)
	}
	a.Filter = e.filterOf(fields)
	return a, nil
}

// CheckPayload refuses a payload that is no object of the event's schema. Its size was checked when it was read.
func (e *Event) CheckPayload(raw json.RawMessage) error {
	if len(raw) == 0 || raw[0] != '{' {
		return refusal.New(refusal.BadPayload, "payload for %s: must be an object", e.Name)
	}
	if problem := e.payload.problem(raw); problem != "" {
		return refusal.New(refusal.BadPayload, "payload for %s: %s", e.Name, problem)
	}
	return nil
}

// problem says what about a value does not fit, naming the field but not its content; empty when it fits.
func (s *shape) problem(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return "is no JSON"
	}
	object, _ := v.(map[string]any)
	for _, name := range s.schema.Required {
		if _, ok := object[name]; !ok {
			return name + " is missing"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.schema.Properties)) {
		sub := s.schema.Properties[name]
		if got, ok := object[name]; ok && sub.Type != "" && !isType(got, sub.Type) {
			return fmt.Sprintf("%s must be of type %s", name, sub.Type)
		}
	}
	if s.resolved.Validate(v) != nil {
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

func (e *Event) route(fields map[string]json.RawMessage) (string, error) {
	var failed error
	topic := placeholder.ReplaceAllStringFunc(e.Topic, func(p string) string {
		name := p[1 : len(p)-1]
		value, err := routeText(fields[name])
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w", name, err)
		}
		return value
	})
	return topic, failed
}

// routeText is a routing argument's value as a segment of a topic.
func routeText(raw json.RawMessage) (string, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return "", fmt.Errorf("is missing, and the event is routed by it")
	}
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", fmt.Errorf("is no JSON string")
		}
	} else if raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
		n, ok := new(big.Rat).SetString(clip(text))
		if !ok || !n.IsInt() {
			return "", fmt.Errorf("must be a whole number to route by")
		}
		text = n.Num().String()
	}
	if len(text) > MaxRouteValue {
		return "", fmt.Errorf("at most %d characters", MaxRouteValue)
	}
	if !routeValue.MatchString(text) {
		return "", fmt.Errorf("a value that routes is made of a-z 0-9 . _ -")
	}
	return text, nil
}

// clip refuses number literals long enough, or with an exponent large enough, to cost anything: it returns no number for them.
func clip(literal string) string {
	mantissa, exponent, has := strings.Cut(strings.ToLower(literal), "e")
	if len(mantissa) > MaxRouteValue || has && len(strings.TrimLeft(exponent, "+-0")) > 2 {
		return ""
	}
	return literal
}

// filterOf is the filter of a subscription with these arguments: an argument that was left out filters nothing.
func (e *Event) filterOf(fields map[string]json.RawMessage) Filter {
	var f Filter
	for field, template := range e.Filter {
		value := json.RawMessage(mustJSON(template))
		if m := placeholder.FindStringSubmatch(template); m != nil {
			given, ok := fields[m[1]]
			if !ok || string(given) == "null" {
				continue
			}
			value = given
		}
		if f == nil {
			f = Filter{}
		}
		f[field] = value
	}
	return f
}

func mustJSON(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return b
}

// ParseFilter reads a topic subscription's filter: an object of payload fields and the scalar each must equal. nil and null are
// no filter.
func ParseFilter(raw json.RawMessage) (Filter, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var f Filter
	if json.Unmarshal(raw, &f) != nil {
		return nil, refusal.New(refusal.BadRequest, "filter: must be an object")
	}
	if len(f) > 20 {
		return nil, refusal.New(refusal.BadRequest, "filter: at most 20 fields")
	}
	for name, value := range f {
		if value = bytes.TrimSpace(value); value[0] == '{' || value[0] == '[' {
			return nil, refusal.New(refusal.BadRequest, "filter.%s: must be a string, number, boolean or null", Quote(name))
		}
	}
	if len(f) == 0 {
		return nil, nil
	}
	return f, nil
}
