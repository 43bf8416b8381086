package credential_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"testing"
	"time"
)

// now is the time of every test here.
var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// members are a header or claims; a nil value leaves the member out.
type members map[string]any

// with returns m with changes.
func (m members) with(changes members) members {
	changed := maps.Clone(m)
	maps.Copy(changed, changes)
	maps.DeleteFunc(changed, func(_ string, value any) bool { return value == nil })
	return changed
}

// privateKey is a key that is the same in each run.
func privateKey(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

// part writes one part of a JWS: raw text as it is, anything else as JSON.
func part(t testing.TB, value any) string {
	t.Helper()
	if text, ok := value.(string); ok {
		return base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// sign makes a compact JWS by hand, so that any of it can be wrong.
func sign(t testing.TB, key ed25519.PrivateKey, head, claims any) string {
	t.Helper()
	input := part(t, head) + "." + part(t, claims)
	return input + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(input)))
}
