package wakeshift

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/big"
	"regexp"
	"strings"
)

const (
	keyPrefix      = "wst_"
	base58Alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	// keyDigits base58 digits hold keyBytes: an Ed25519 seed and its CRC-32.
	keyDigits = 50
	keyBytes  = ed25519.SeedSize + crc32.Size
)

// None of these may show any part of the key.
var (
	errKeyForm = errors.New("wakeshift: an app key is wst_ followed by 50 base58 characters, " +
		"or the older wst_test_<app>_<seed> or wst_live_<app>_<seed>")
	errKeyChecksum = errors.New("wakeshift: the app key is mistyped: its checksum does not match")
)

var olderKey = regexp.MustCompile(`^(test|live)_([a-z][a-z0-9-]{1,39})_([A-Za-z0-9_-]{43})$`)

// A signer is a parsed app key. The private half lives in a closure only, so
// that printing a signer, or a struct that holds one, cannot show it.
type signer struct {
	kid  string // names the key to the core
	app  string // the app's id, which only the older form of key has
	test bool   // a wst_test_ key: it comes from a core that is not the default one
	sign func(message []byte) []byte
}

// parseKey reads an app key in either form and checks it. Its errors never
// contain any part of the key.
func parseKey(text string) (*signer, error) {
	body, ok := strings.CutPrefix(strings.TrimSpace(text), keyPrefix)
	if !ok {
		return nil, errKeyForm
	}
	if m := olderKey.FindStringSubmatch(body); m != nil {
		seed, err := base64.RawURLEncoding.Strict().DecodeString(m[3])
		if err != nil {
			return nil, errKeyForm
		}
		s := newSigner(seed)
		s.app, s.test = m[2], m[1] == "test"
		return s, nil
	}
	data, ok := decodeBase58(body)
	if !ok {
		return nil, errKeyForm
	}
	seed, sum := data[:ed25519.SeedSize], data[ed25519.SeedSize:]
	if binary.BigEndian.Uint32(sum) != crc32.ChecksumIEEE(seed) {
		return nil, errKeyChecksum
	}
	return newSigner(seed), nil
}

// decodeBase58 reads exactly keyDigits digits as exactly keyBytes bytes.
func decodeBase58(text string) ([]byte, bool) {
	if len(text) != keyDigits {
		return nil, false
	}
	number, base := new(big.Int), big.NewInt(int64(len(base58Alphabet)))
	for i := range len(text) {
		digit := strings.IndexByte(base58Alphabet, text[i])
		if digit < 0 {
			return nil, false
		}
		number.Mul(number, base).Add(number, big.NewInt(int64(digit)))
	}
	if number.BitLen() > keyBytes*8 {
		return nil, false
	}
	return number.FillBytes(make([]byte, keyBytes)), true
}

func newSigner(seed []byte) *signer {
	private := ed25519.NewKeyFromSeed(seed)
	sum := sha256.Sum256(private.Public().(ed25519.PublicKey))
	return &signer{
		kid:  base64.RawURLEncoding.EncodeToString(sum[:16]),
		sign: func(message []byte) []byte { return ed25519.Sign(private, message) },
	}
}
