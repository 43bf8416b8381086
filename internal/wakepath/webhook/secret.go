package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

const (
	secretPrefix   = "whsec_"
	minSecretBytes = 24
	maxSecretBytes = 64
)

// ErrSecret says that a text is not a webhook secret. The error around it says why and never repeats the text.
var ErrSecret = errors.New("not a webhook secret")

// A Secret is what a receiver gave to have its deliveries signed with. It prints as a placeholder. The zero value is no
// secret.
type Secret struct{ key string }

// ParseSecret reads whsec_ and base64 in the standard alphabet, padded or not, of 24 to 64 bytes. The error wraps
// [ErrSecret].
func ParseSecret(text string) (Secret, error) {
	encoded, found := strings.CutPrefix(text, secretPrefix)
	if !found {
		return Secret{}, fmt.Errorf("%w: it must begin with %s", ErrSecret, secretPrefix)
	}
	if len(encoded) > base64.StdEncoding.EncodedLen(maxSecretBytes) {
		return Secret{}, fmt.Errorf("%w: it must have %d to %d bytes", ErrSecret, minSecretBytes, maxSecretBytes)
	}
	encoding := base64.StdEncoding
	if !strings.HasSuffix(encoded, "=") {
		encoding = base64.RawStdEncoding
	}
	key, err := encoding.DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return Secret{}, fmt.Errorf("%w: base64 in the standard alphabet must follow %s", ErrSecret, secretPrefix)
	}
	if len(key) < minSecretBytes || len(key) > maxSecretBytes {
		return Secret{}, fmt.Errorf("%w: it must have %d to %d bytes", ErrSecret, minSecretBytes, maxSecretBytes)
	}
	return Secret{key: string(key)}, nil
}

// String is a placeholder.
func (s Secret) String() string { return "[webhook secret]" }

// Format writes the placeholder whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue is the placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Sign makes the value of the webhook-signature header (Standard Webhooks v1): one signature for each secret, with spaces
// between them, so that a receiver may change its secret while deliveries are under way. at is cut to the second.
func Sign(secrets []Secret, id string, at time.Time, body []byte) string {
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret.key))
		_, _ = io.WriteString(mac, id+"."+unixText(at)+".") // a hash never fails to write
		_, _ = mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}

// unixText is a time as the webhook-timestamp header has it.
func unixText(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
