package credential

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// masterBytes is the length of the core's secret.
const masterBytes = 32

// A Master is the core's secret with the keys derived from it, one for each purpose. It prints as a placeholder. Make it
// with [NewMaster], [LoadMaster] or [MasterFromEnv]. Safe for concurrent use.
type Master struct {
	capability [len(kinds)][]byte
	voucher    []byte
	ticket     []byte
	seal       []byte
	pseudonym  []byte
	beacon     ed25519.PrivateKey
	id         string
}

// NewMaster derives the keys from a secret of 32 random bytes. The same secret gives the same keys, today and in later
// versions: tokens handed out outlive the process.
func NewMaster(secret [masterBytes]byte) *Master {
	m := &Master{
		voucher:   derive(secret, "voucher"),
		ticket:    derive(secret, "ticket"),
		seal:      derive(secret, "seal"),
		pseudonym: derive(secret, "pseudonym"),
		beacon:    ed25519.NewKeyFromSeed(derive(secret, "beacon")),
		id:        idEncoding.EncodeToString(derive(secret, "id"))[:fullMAC],
	}
	for kind, of := range kinds {
		m.capability[kind] = derive(secret, "capability/"+of.purpose)
	}
	return m
}

// MasterFromEnv reads a secret that the operator keeps outside the data directory: 32 bytes as hex, or as base64 in either
// alphabet, padded or not. White space around it is ignored. The error never repeats the text.
func MasterFromEnv(text string) (*Master, error) {
	text = strings.TrimSpace(text)
	secret, err := hex.DecodeString(text)
	if err != nil || len(secret) != masterBytes {
		unpadded := strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(text, "="))
		secret, err = base64.RawURLEncoding.Strict().DecodeString(unpadded)
	}
	if err != nil || len(secret) != masterBytes {
		return nil, errors.New("the master key must be 32 bytes, written as 64 hex digits or as base64 (openssl rand -hex 32 makes one)")
	}
	return NewMaster([masterBytes]byte(secret)), nil
}

func derive(secret [masterBytes]byte, purpose string) []byte {
	key, err := hkdf.Key(sha256.New, secret[:], nil, "rouse/1/"+purpose, sha256.Size)
	if err != nil {
		panic("credential: deriving 32 bytes with HKDF: " + err.Error()) // only for lengths beyond 8,160 bytes
	}
	return key
}

// ID tells masters apart and tells nothing else: one secret has one ID, from which it cannot be found out.
func (m *Master) ID() string { return m.id }

// String is a placeholder: a master is never shown.
func (m *Master) String() string { return "[master key]" }

// Format writes the placeholder whatever the verb.
func (m *Master) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, m.String()) }

// LogValue is the placeholder.
func (m *Master) LogValue() slog.Value { return slog.StringValue(m.String()) }

// Lengths of the MACs at the end of tokens, in characters of five bits each.
const (
	fullMAC  = 26 // 130 bits
	shortMAC = 16 // 80 bits: for vouchers, whose length is given
)

// macText is the MAC of text under key, in the alphabet of ids.
func macText(key []byte, text string, length int) string {
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, text) // a hash never fails to write
	return idEncoding.EncodeToString(mac.Sum(nil))[:length]
}

// openMAC splits body and MAC and reports whether they belong together. The MAC is compared as text, so that exactly one
// spelling of it is right.
func openMAC(key []byte, text string, length int) (body string, ok bool) {
	if len(text) <= length {
		return "", false
	}
	body, mac := text[:len(text)-length], text[len(text)-length:]
	right := macText(key, body, length)
	return body, subtle.ConstantTimeCompare([]byte(mac), []byte(right)) == 1
}
