package wakeshift

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// The optional arguments by which an agent says which conversation it is.
const (
	sessionArgument      = "session_key"
	harnessArgument      = "harness"
	conversationArgument = "conversation_id"
)

// injectedArguments are added to the schema of a tool, in this order.
var injectedArguments = []struct{ name, description string }{
	{sessionArgument, "The session_key that an earlier result of this server gave you, if any. Secret: for this conversation only."},
	{harnessArgument, "The name of the program you are running in, if you know it."},
	{conversationArgument, "The id your program gives this conversation, if it gives you one."},
}

// maxToolSchemas bounds the kept schemas. An app has as many as it has tools; one
// that makes up new schemas all the time starts afresh now and then.
const maxToolSchemas = 1000

// toolSchemas keeps the schemas of tools with their added arguments. A server
// made for every request must find the same pointer each time: the MCP SDK's own
// cache of schemas goes by the pointer and never forgets.
type toolSchemas struct {
	mu   sync.Mutex
	kept map[toolSchemaKey]toolSchema
}

type toolSchemaKey struct {
	in    reflect.Type
	given [sha256.Size]byte // of the tool's own schema as JSON; zero without one
}

type toolSchema struct {
	schema   *jsonschema.Schema
	injected []string // which of injectedArguments were added
}

func newToolSchemas() *toolSchemas {
	return &toolSchemas{kept: map[toolSchemaKey]toolSchema{}}
}

// toolSchemaFor returns the schema of a tool for In, given its own schema or nil,
// with the arguments of injectedArguments that do not collide.
func toolSchemaFor[In any](schemas *toolSchemas, given any) (*jsonschema.Schema, []string, error) {
	key := toolSchemaKey{in: reflect.TypeFor[In]()}
	var data []byte
	if given != nil {
		var err error
		if data, err = json.Marshal(given); err != nil {
			return nil, nil, err
		}
		key.given = sha256.Sum256(data)
	}
	schemas.mu.Lock()
	defer schemas.mu.Unlock()
	if kept, ok := schemas.kept[key]; ok {
		return kept.schema, kept.injected, nil
	}
	own, err := ownToolSchema(key.in, given, data)
	if err != nil {
		return nil, nil, err
	}
	made := inject(own, key.in)
	if len(schemas.kept) >= maxToolSchemas {
		clear(schemas.kept)
	}
	schemas.kept[key] = made
	return made.schema, made.injected, nil
}

// ownToolSchema is a tool's schema before anything is added: a copy of the given
// one, or inferred as the MCP SDK would.
func ownToolSchema(in reflect.Type, given any, data []byte) (*jsonschema.Schema, error) {
	if given, ok := given.(*jsonschema.Schema); ok {
		return given.CloneSchemas(), nil // keeps the order of its properties
	}
	if data != nil {
		s := new(jsonschema.Schema)
		return s, json.Unmarshal(data, s)
	}
	if in.Kind() == reflect.Interface {
		return &jsonschema.Schema{Type: "object"}, nil
	}
	for in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	return jsonschema.ForType(in, &jsonschema.ForOptions{})
}

// inject adds the arguments the tool does not have itself. own is changed.
func inject(own *jsonschema.Schema, in reflect.Type) toolSchema {
	made := toolSchema{schema: own}
	if in.Kind() == reflect.Map && in.Elem().Kind() != reflect.Interface && in.Elem().Kind() != reflect.String {
		return made // In could not hold their values
	}
	properties := make(map[string]*jsonschema.Schema, len(own.Properties)+len(injectedArguments))
	maps.Copy(properties, own.Properties)
	order := slices.Clone(own.PropertyOrder)
	for _, argument := range injectedArguments {
		if properties[argument.name] != nil {
			continue
		}
		properties[argument.name] = &jsonschema.Schema{Type: "string", Description: argument.description}
		order = append(order, argument.name)
		made.injected = append(made.injected, argument.name)
	}
	own.Properties = properties
	if len(own.PropertyOrder) > 0 {
		own.PropertyOrder = order
	}
	return made
}
