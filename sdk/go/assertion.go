package wakeshift

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
)

// assertionLifetime is the longest the core accepts.
const assertionLifetime = 120 * time.Second

// assertion makes a fresh proof of who the app is, for one request: a compact
// JWS signed with the app key, for the core at the given base address. Each has
// its own jti, since the core accepts one only once.
func (s *signer) assertion(core string, now time.Time) (string, error) {
	jti := make([]byte, 16)
	rand.Read(jti) // never fails: see crypto/rand
	who := cmp.Or(s.app, s.kid)
	head, err := encodePart(map[string]any{"alg": "EdDSA", "typ": "app+jwt", "kid": s.kid})
	if err != nil {
		return "", err
	}
	claims, err := encodePart(map[string]any{
		"iss": who,
		"sub": who,
		"aud": core + "/api/apps",
		"iat": now.Unix(),
		"exp": now.Add(assertionLifetime).Unix(),
		"jti": base64.RawURLEncoding.EncodeToString(jti),
	})
	if err != nil {
		return "", err
	}
	message := head + "." + claims
	return message + "." + base64.RawURLEncoding.EncodeToString(s.sign([]byte(message))), nil
}

func encodePart(part map[string]any) (string, error) {
	data, err := json.Marshal(part)
	if err != nil {
		return "", fmt.Errorf("wakeshift: encoding an assertion: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(data), nil
}
