package credential

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/big"
	"regexp"
	"strings"
)

// ErrAppKey says that a text is not an app key. The error around it says why and never repeats the text.
var ErrAppKey = errors.New("not an app key")

const (
	appKeyPrefix   = "wst_"
	base58Alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	base58Length   = 50
	base58Bytes    = ed25519.SeedSize + crc32.Size
)

// olderAppKey is the form that names its app: wst_test_<app>_<seed>, or wst_live_… .
var olderAppKey = regexp.MustCompile(`^wst_(?:test|live)_([a-z][a-z0-9-]{1,39})_([A-Za-z0-9_-]{43})$`)

// An AppKey is the private key an app signs its assertions with. The core makes one to hand it out and keeps the public
// half only. It prints as a placeholder; [AppKey.Reveal] shows it. The zero value is no key.
type AppKey struct {
	seed [ed25519.SeedSize]byte
	app  string
	text string
}

// GenerateAppKey makes an app key. A nil source of randomness means the system's; the error is the source's.
func GenerateAppKey(random io.Reader) (AppKey, error) {
	if random == nil {
		random = rand.Reader
	}
	var key AppKey
	if _, err := io.ReadFull(random, key.seed[:]); err != nil {
		return AppKey{}, fmt.Errorf("random bits for an app key: %w", err)
	}
	key.text = appKeyPrefix + encodeBase58(binary.BigEndian.AppendUint32(bytes.Clone(key.seed[:]), crc32.ChecksumIEEE(key.seed[:])))
	return key, nil
}

// ParseAppKey reads an app key in either form; white space around it is ignored. The error wraps [ErrAppKey].
func ParseAppKey(text string) (AppKey, error) {
	text = strings.TrimSpace(text)
	digits, found := strings.CutPrefix(text, appKeyPrefix)
	switch {
	case !found:
		return AppKey{}, fmt.Errorf("%w: it must begin with %s", ErrAppKey, appKeyPrefix)
	case strings.Contains(digits, "_"):
		return parseOlderAppKey(text)
	case len(digits) != base58Length:
		return AppKey{}, fmt.Errorf("%w: %d characters must follow %s", ErrAppKey, base58Length, appKeyPrefix)
	}
	data, ok := decodeBase58(digits)
	if !ok {
		return AppKey{}, fmt.Errorf("%w: a character is wrong", ErrAppKey)
	}
	key := AppKey{seed: [ed25519.SeedSize]byte(data), text: text}
	if binary.BigEndian.Uint32(data[ed25519.SeedSize:]) != crc32.ChecksumIEEE(key.seed[:]) {
		return AppKey{}, fmt.Errorf("%w: its checksum does not match, so a character is wrong", ErrAppKey)
	}
	return key, nil
}

func parseOlderAppKey(text string) (AppKey, error) {
	parts := olderAppKey.FindStringSubmatch(text)
	if parts == nil {
		return AppKey{}, fmt.Errorf("%w: the older form is wst_test_ or wst_live_, the app's id, _ and 43 characters", ErrAppKey)
	}
	seed, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil {
		return AppKey{}, fmt.Errorf("%w: its last character is wrong", ErrAppKey)
	}
	return AppKey{seed: [ed25519.SeedSize]byte(seed), app: parts[1], text: text}, nil
}

// App is the id of the app that the older form of a key names; empty for the current form.
func (k AppKey) App() string { return k.app }

// PrivateKey is the key to sign with.
func (k AppKey) PrivateKey() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(k.seed[:]) }

// PublicKey is the half the core keeps.
func (k AppKey) PublicKey() ed25519.PublicKey { return k.PrivateKey().Public().(ed25519.PublicKey) }

// Reveal is the key in clear, in the form it was made or read in. It is for showing a new key to its owner, once.
func (k AppKey) Reveal() string { return k.text }

// String is a placeholder.
func (k AppKey) String() string { return "[app key]" }

// Format writes the placeholder whatever the verb.
func (k AppKey) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, k.String()) }

// LogValue is the placeholder.
func (k AppKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// keyIDLength is the length of a kid in characters.
const keyIDLength = 22

// KeyID is the id of a public key (its kid): base64url of the first 16 bytes of its SHA-256, 22 characters.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

func encodeBase58(data []byte) string {
	number, digit, base := new(big.Int).SetBytes(data), new(big.Int), big.NewInt(58)
	text := make([]byte, base58Length)
	for i := len(text) - 1; i >= 0; i-- {
		number.DivMod(number, base, digit)
		text[i] = base58Alphabet[digit.Int64()]
	}
	return string(text)
}

func decodeBase58(text string) (data []byte, ok bool) {
	number, base := new(big.Int), big.NewInt(58)
	for i := range len(text) {
		digit := strings.IndexByte(base58Alphabet, text[i])
		if digit < 0 {
			return nil, false
		}
		number.Mul(number, base).Add(number, big.NewInt(int64(digit)))
	}
	if number.BitLen() > base58Bytes*8 {
		return nil, false
	}
	return number.FillBytes(make([]byte, base58Bytes)), true
}
