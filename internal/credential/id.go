package credential

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"io"
	"strings"
)

// idBytes is the length of what an id stands for: 80 bits, so that a core may make billions without meeting one twice.
const idBytes = 10

// idLength is the length of an id in characters.
const idLength = idBytes * 8 / 5

const idAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

var idEncoding = base32.NewEncoding(idAlphabet).WithPadding(base32.NoPadding)

// NewID makes an id: 80 random bits as 16 characters of a-z and 2-7. Safe for concurrent use.
func NewID() string {
	var bits [idBytes]byte
	_, _ = rand.Read(bits[:]) // never fails: the process ends when the system has no randomness
	return idEncoding.EncodeToString(bits[:])
}

// NewIDFrom is [NewID] with the source of randomness as an argument. The error is the source's.
func NewIDFrom(random io.Reader) (string, error) {
	var bits [idBytes]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return "", fmt.Errorf("random bits for an id: %w", err)
	}
	return idEncoding.EncodeToString(bits[:]), nil
}

// IsID reports whether text has the form of an id made by [NewID].
func IsID(text string) bool {
	return len(text) == idLength && strings.Trim(text, idAlphabet) == ""
}

// mustBeID panics for what is no id: a token made for it could not be opened again.
func mustBeID(text string) {
	if !IsID(text) {
		panic("credential: a token was asked for something that is no id")
	}
}
