package wake

import "encoding/json"

// OpenTo reports whether a native client of that user (empty: nobody is signed in) may have the event at all, without an app's tool
// that lets it in.
func (e *Event) OpenTo(user string) bool {
	if e.Public == nil || e.Personal {
		return user != "" && (e.Public == nil || *e.Public)
	}
	return *e.Public
}

// ArgumentsSchema is the JSON Schema of the event's arguments, compact.
func (e *Event) ArgumentsSchema() (json.RawMessage, error) { return json.Marshal(e.arguments.schema) }
