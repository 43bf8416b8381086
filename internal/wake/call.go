package wake

import (
	"encoding/json"
	"fmt"

	"github.com/rouse-dev/rouse/internal/refusal"
)

// A Call says who called an app's tool, as the app's SDK packed it; docs/wire.md §2 describes the fields and their limits.
// Nothing in it is a credential but Session.
type Call struct {
	Client       string          `json:"client"`
	Version      string          `json:"client_version"`
	Extensions   []string        `json:"extensions"`
	User         string          `json:"user"`
	Meta         json.RawMessage `json:"meta"`
	Session      string          `json:"session"`
	UserAgent    string          `json:"user_agent"`
	Conversation string          `json:"conversation"`
	Harness      string          `json:"harness"`
	Tool         string          `json:"tool"`
}

// Limits of a call's parts that are not plain strings.
const (
	maxCallMeta       = 64 << 10
	maxCallExtensions = 50
)

// Check refuses a call with a field over its limit.
func (c Call) Check() error {
	for _, f := range []struct {
		name, value string
		limit       int
	}{
		{"client", c.Client, 200}, {"client_version", c.Version, 100}, {"user", c.User, MaxUser}, {"user_agent", c.UserAgent, 1000},
		{"conversation", c.Conversation, 256}, {"harness", c.Harness, 100}, {"tool", c.Tool, 200},
	} {
		if err := CheckString("call."+f.name, f.value, f.limit); err != nil {
			return err
		}
	}
	if len(c.Meta) > maxCallMeta {
		return refusal.New(refusal.BadRequest, "call.meta: at most %d bytes", maxCallMeta)
	}
	if len(c.Meta) > 0 && c.Meta[0] != '{' && string(c.Meta) != "null" {
		return refusal.New(refusal.BadRequest, "call.meta: must be an object")
	}
	if len(c.Extensions) > maxCallExtensions {
		return refusal.New(refusal.BadRequest, "call.extensions: at most %d", maxCallExtensions)
	}
	for i, name := range c.Extensions {
		if err := CheckString(fmt.Sprintf("call.extensions[%d]", i), name, 200); err != nil {
			return err
		}
	}
	return nil
}

// codexMeta is the key of a tool call's _meta in which Codex says which turn of which thread it is.
const codexMeta = "x-codex-turn-metadata"

// CodexThread is the Codex thread that the call's _meta names; ok is false when it carries no Codex metadata at all.
func (c Call) CodexThread() (thread string, ok bool) {
	var meta map[string]json.RawMessage
	if json.Unmarshal(c.Meta, &meta) != nil {
		return "", false
	}
	raw, ok := meta[codexMeta]
	if !ok {
		return "", false
	}
	// Codex has sent the metadata as an object and as a JSON text of one.
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	var turn struct {
		Thread string `json:"thread_id"`
	}
	if json.Unmarshal(raw, &turn) != nil || CheckString("", turn.Thread, 256) != nil {
		return "", true
	}
	return turn.Thread, true
}

// DeclaresExtension reports whether the client said it speaks that MCP extension.
func (c Call) DeclaresExtension(name string) bool {
	for _, e := range c.Extensions {
		if e == name {
			return true
		}
	}
	return false
}
