package wake

import (
	"encoding/json"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"

	"github.com/rouse-dev/rouse/internal/refusal"
)

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
	var fields map[string]jsontext.Value
	if jsonv2.Unmarshal(raw, &fields) != nil || fields == nil {
		return bad("must be an object")
	}
	values := make(map[string]any, len(fields))
	for name, field := range fields {
		if e.arguments.schema.Properties[name] == nil {
			return bad("the event has no argument %s", Quote(name))
		}
		var value any
		if jsonv2.Unmarshal(field, &value) != nil {
			return bad("is no JSON")
		}
		values[name] = value
	}
	if problem := e.arguments.problem(values); problem != "" {
		return bad("%s", problem)
	}
	canonical, err := canonical(raw, fields, values)
	if err != nil {
		return bad("must be plain JSON")
	}
	a := Arguments{Canonical: canonical, Filter: e.filterOf(fields)}
	if a.Topic, err = e.topicOf(fields, values); err != nil {
		return bad("%s", err)
	}
	return a, nil
}

// canonical is the canonical form of arguments. All but a few have texts, truth values and short whole numbers only, whose form
// is known without a look at the rest of RFC 8785.
func canonical(raw json.RawMessage, fields map[string]jsontext.Value, values map[string]any) (json.RawMessage, error) {
	names := make([]string, 0, len(fields))
	for name, value := range values {
		switch value.(type) {
		case nil, bool, string:
		case float64:
			if !shortInteger(fields[name]) {
				return jcs.Transform(raw)
			}
		default:
			return jcs.Transform(raw)
		}
		names = append(names, name)
	}
	slices.Sort(names) // names are ASCII, so that bytes sort as RFC 8785 wants it
	out := append(make([]byte, 0, len(raw)), '{')
	var err error
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), name...), '"', ':')
		if text, ok := values[name].(string); !ok {
			out = append(out, fields[name]...)
		} else if out, err = jsontext.AppendQuote(out, text); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// shortInteger reports whether a number is a few digits that do not begin with 0, or 0 itself.
func shortInteger(number jsontext.Value) bool {
	if string(number) == "0" {
		return true
	}
	return len(number) <= 15 && number[0] != '0' && onlyHas(string(number), "0123456789")
}

// CheckPayload refuses a payload that is no object of the event's schema. Its size was checked when it was read.
func (e *Event) CheckPayload(raw json.RawMessage) error {
	if len(raw) == 0 || raw[0] != '{' {
		return refusal.New(refusal.BadPayload, "payload for %s: must be an object", e.Name)
	}
	problem := "is no JSON"
	var object map[string]any
	if jsonv2.Unmarshal(raw, &object) == nil {
		problem = e.payload.problem(object)
	}
	if problem != "" {
		return refusal.New(refusal.BadPayload, "payload for %s: %s", e.Name, problem)
	}
	return nil
}
