package wake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

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

// A piece of a topic is a text, or the value of an argument.
type piece struct{ text, argument string }

// pieces takes a topic apart.
func pieces(topic string) []piece {
	var list []piece
	done := 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(topic, -1) {
		if m[0] > done {
			list = append(list, piece{text: topic[done:m[0]]})
		}
		list = append(list, piece{argument: topic[m[2]:m[3]]})
		done = m[1]
	}
	return append(list, piece{text: topic[done:]})
}

func (e *Event) topicOf(fields map[string]jsontext.Value, values map[string]any) (string, error) {
	topic := make([]byte, 0, MaxTopic)
	for _, p := range e.route {
		topic = append(topic, p.text...)
		if p.argument == "" {
			continue
		}
		text, err := routeText(fields[p.argument], values[p.argument])
		if err != nil {
			return "", fmt.Errorf("%s: %w", p.argument, err)
		}
		topic = append(topic, text...)
	}
	return string(topic), nil
}

// routeText is a routing argument's value as a segment of a topic; raw is how it was written.
func routeText(raw jsontext.Value, value any) (string, error) {
	text := string(raw)
	switch value := value.(type) {
	case nil:
		return "", fmt.Errorf("is missing, and the event is routed by it")
	case string:
		text = value
	case float64:
		if shortInteger(raw) {
			break
		}
		n, ok := new(big.Rat).SetString(clip(text))
		if !ok || !n.IsInt() {
			return "", fmt.Errorf("must be a whole number to route by")
		}
		text = n.Num().String()
	}
	if len(text) > MaxRouteValue {
		return "", fmt.Errorf("at most %d characters", MaxRouteValue)
	}
	if text == "" || !onlyHas(text, routeAlphabet) {
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

// A source is where a field of a subscription's filter comes from: an argument, or the manifest itself.
type source struct {
	field    string
	argument string
	value    json.RawMessage // when it is no argument's
}

// sources takes an event's filter apart.
func sources(filter map[string]string) []source {
	var list []source
	for field, template := range filter {
		if m := placeholder.FindStringSubmatch(template); m != nil {
			list = append(list, source{field: field, argument: m[1]})
		} else {
			list = append(list, source{field: field, value: mustJSON(template)})
		}
	}
	return list
}

// filterOf is the filter of a subscription with these arguments: an argument that was left out filters nothing.
func (e *Event) filterOf(fields map[string]jsontext.Value) Filter {
	var f Filter
	for _, s := range e.filters {
		value := s.value
		if value == nil {
			if value = json.RawMessage(fields[s.argument]); value == nil || string(value) == "null" {
				continue
			}
		}
		if f == nil {
			f = Filter{}
		}
		f[s.field] = value
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
