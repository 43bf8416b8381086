package wake

import (
	"crypto/ed25519"
	"time"
)

// An App is who emits: it owns keys, a manifest of events, and users.
type App struct {
	ID        string // lower-case letters, digits and dashes, 2 to 40 characters
	Name      string // as its operator wrote it; agents see it
	CreatedAt time.Time
}

// A Key is the public half of an app key. The private half never reaches the core.
type Key struct {
	ID        string // kid: derived from the public key
	App       string
	Name      string
	Public    ed25519.PublicKey
	CreatedAt time.Time
	RevokedAt time.Time // zero while the key is good
}

// Revoked reports whether the key may no longer be used.
func (k Key) Revoked() bool { return !k.RevokedAt.IsZero() }
