package credential

import "strings"

// A Kind is what a capability opens. A token of one kind never opens another.
type Kind int

// The kinds of capabilities.
const (
	SessionKey Kind = iota // an agent's conversation, as the argument of a tool; never in a URL
	Stream                 // reading what a conversation is owed
	Connector              // a connector's WebSocket
	PublishURL             // emitting one event or publishing to one topic
)

// kinds gives each kind its prefix and the name its key is derived under. Neither may ever change.
var kinds = [...]struct{ prefix, purpose string }{
	SessionKey: {"wsk_", "session"},
	Stream:     {"wss_", "stream"},
	Connector:  {"wsc_", "connector"},
	PublishURL: {"wsp_", "publish"},
}

// capabilityLength is the length of every capability: prefix, id, MAC.
const capabilityLength = 4 + idLength + fullMAC

// Mint makes the capability of that kind for an id made by [NewID]: 46 characters of a-z, 2-7 and one underscore, the same
// each time. It holds the id in clear and 130 bits of MAC, and tells nothing about other capabilities for the id. Mint
// panics if id is not an id.
func (m *Master) Mint(kind Kind, id string) string {
	mustBeID(id)
	return kinds[kind].prefix + id + macText(m.capability[kind], id, fullMAC)
}

// Open gives the id a capability of that kind was made for. For any other text ok is false.
func (m *Master) Open(kind Kind, token string) (id string, ok bool) {
	text, found := strings.CutPrefix(token, kinds[kind].prefix)
	if !found || len(token) != capabilityLength {
		return "", false
	}
	id, ok = openMAC(m.capability[kind], text, fullMAC)
	if !ok {
		return "", false
	}
	return id, true
}
