package wake

import (
	"strings"
	"time"
)

// A Conversation is one agent's thread of talk on one harness: the unit that is woken.
type Conversation struct {
	ID      string
	App     string
	Harness string // as recognised; empty when nothing named one
	Client  string // MCP clientInfo.name as sent
	Version string // MCP clientInfo.version as sent, if the SDK says
	User    string // the app's own id for the person; empty is nobody
	Thread  string // the harness's own id of the conversation, if it gives one

	// Position is the last place in the log up to which the conversation has received what it was owed.
	Position Seq

	CreatedAt time.Time
	SeenAt    time.Time // the last call that named it
}

// Kind is what a session key is bound to: the harness, or the client's name where none was recognised. A key presented by
// another kind of client is refused.
func (c Conversation) Kind() string { return KindOf(c.Harness, c.Client) }

// KindOf is the kind of a caller; see [Conversation.Kind].
func KindOf(harness, client string) string {
	if harness != "" {
		return harness
	}
	return "client:" + strings.ToLower(client)
}

// Topic is the conversation's own topic: what is written there reaches it and nobody else.
func (c Conversation) Topic() string { return ConversationTopic(c.ID) }

// ConversationTopic is the topic of the conversation with that id; see [Conversation.Topic].
func ConversationTopic(id string) string { return ReservedTopicPrefix + "conversation/" + id }
