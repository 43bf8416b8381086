package events

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"
)

const secretPrefix = "whsec_"

// How long, and how many, old secrets are still good: a server may have signed
// what it retries, or not have heard of the new one.
const (
	secretGrace = 24 * time.Hour
	mostSecrets = 3
)

// A secret is what a webhook is signed with.
type secret struct {
	Text string `json:"text"` // whsec_ and base64
	// Replaced is when the server took a newer one; zero until then.
	Replaced time.Time `json:"replaced,omitzero"`
	Made     time.Time `json:"made"`
}

func newSecret() secret {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return secret{Text: secretPrefix + base64.StdEncoding.EncodeToString(key), Made: time.Now()}
}

// newToken makes the part of a receiver's URL that nobody can guess.
func newToken() string {
	token := make([]byte, 24)
	_, _ = rand.Read(token) // it never fails
	return hex.EncodeToString(token)
}

// rotated puts a new secret before the others, unless the server has not taken the
// newest yet: then that is still to be told.
func rotated(secrets []secret) []secret {
	if len(secrets) > 1 && secrets[1].Replaced.IsZero() {
		return secrets
	}
	return append([]secret{newSecret()}, secrets...)
}

// taken notes that the server has the newest secret, and drops those that are too
// old.
func taken(secrets []secret) (kept []secret) {
	for i, s := range secrets {
		if i > 0 && s.Replaced.IsZero() {
			s.Replaced = time.Now()
		}
		if i == 0 || len(kept) < mostSecrets && time.Since(s.Replaced) < secretGrace {
			kept = append(kept, s)
		}
	}
	return kept
}

// keys are the bytes of secrets that are still good.
func keys(secrets []secret) (keys [][]byte) {
	for _, s := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Text, secretPrefix))
		if err == nil && len(key) > 0 && (s.Replaced.IsZero() || time.Since(s.Replaced) < secretGrace) {
			keys = append(keys, key)
		}
	}
	return keys
}

// mostSignatures is how many signatures of a delivery are looked at.
const mostSignatures = 16

// isSigned says whether one of the signatures in a header was made with one of
// the keys. It takes the same time whatever is wrong with them.
func isSigned(keys [][]byte, id, timestamp string, body []byte, header string) bool {
	good := false
	signatures := strings.Fields(header)
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		want := mac.Sum(nil)
		for _, signature := range signatures[:min(len(signatures), mostSignatures)] {
			text, ok := strings.CutPrefix(signature, "v1,")
			got, err := base64.StdEncoding.DecodeString(text)
			if ok && err == nil && hmac.Equal(got, want) {
				good = true
			}
		}
	}
	return good
}
