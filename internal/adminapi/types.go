package adminapi

import (
	"encoding/json"
	"time"
)

// A Status says what core answers.
type Status struct {
	PublicURL string `json:"public_url"`
	Version   string `json:"version"`
	Data      string `json:"data"`
	Apps      int    `json:"apps"`
}

// An App is an app of the core.
type App struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// A Key is an app key as the core knows it: its public half.
type Key struct {
	ID        string    `json:"id"`
	App       string    `json:"app"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
	RevokedAt time.Time `json:"revoked_at,omitzero"`
}

// A NewKey is a key that was just made, with the private half that nobody keeps.
type NewKey struct {
	Key
	Secret string `json:"secret"` // for WAKESHIFT_KEY
}

// An Emit is one thing that happened, as the app would emit it. Empty fields are as good as absent.
type Emit struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	To        string          `json:"to,omitempty"`
}

// An Emitted says what became of an emit.
type Emitted struct {
	ID        string `json:"id,omitempty"` // empty when the answer comes from the app API, which does not say
	Matched   int    `json:"matched"`
	Duplicate bool   `json:"duplicate,omitempty"`
}

// How a subscription is reached now.
const (
	ViaWebhook = "webhook"
	ViaNothing = "" // its conversation is not connected: what happens waits
)

// A Subscription is a live subscription of a conversation, or a webhook.
type Subscription struct {
	ID           string          `json:"id"`
	App          string          `json:"app"`
	Event        string          `json:"event,omitempty"` // empty for a plain topic
	Topic        string          `json:"topic"`
	Arguments    json.RawMessage `json:"arguments,omitempty"`
	Once         bool            `json:"once,omitempty"`
	Conversation string          `json:"conversation,omitempty"`
	Harness      string          `json:"harness,omitempty"`
	Client       string          `json:"client,omitempty"`
	User         string          `json:"user,omitempty"`
	Via          string          `json:"via,omitempty"` // stream, hooks, webhook, or empty: not connected
	WebhookHost  string          `json:"webhook_host,omitempty"`
	LastError    string          `json:"last_error,omitempty"` // of a webhook
	CreatedAt    time.Time       `json:"created_at"`
	ExpiresAt    time.Time       `json:"expires_at"`
}
