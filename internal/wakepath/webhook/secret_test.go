package webhook_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/wakepath/webhook"
)

// secretOf writes a secret of that many bytes.
func secretOf(size int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb}, size))
}

func TestSign(t *testing.T) {
	t.Parallel()
	at := time.Unix(1614265330, 999_999_999)
	body := []byte(`{"test": 2432232314}`)
	one, two := secret(t, secretText), secret(t, secretOf(32))
	const first = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	second := webhook.Sign([]webhook.Secret{two}, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body)
	for name, c := range map[string]struct {
		secrets []webhook.Secret
		want    string
	}{
		"the published vector": {[]webhook.Secret{one}, first},
		"two secrets":          {[]webhook.Secret{one, two}, first + " " + second},
		"the other way round":  {[]webhook.Secret{two, one}, second + " " + first},
		"none":                 {nil, ""},
	} {
		if diff := cmp.Diff(c.want, webhook.Sign(c.secrets, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestParseSecret(t *testing.T) {
	t.Parallel()
	at := time.Unix(0, 0)
	for _, size := range []int{24, 25, 26, 27, 32, 64} {
		padded := secretOf(size)
		want := webhook.Sign([]webhook.Secret{secret(t, padded)}, "m", at, nil)
		got := webhook.Sign([]webhook.Secret{secret(t, strings.TrimRight(padded, "="))}, "m", at, nil)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d bytes without padding are another secret: %s", size, diff)
		}
	}
}

func TestParseSecretRefuses(t *testing.T) {
	t.Parallel()
	const size, form = "not a webhook secret: it must have 24 to 64 bytes", "not a webhook secret: base64 in the standard alphabet must follow whsec_"
	for text, want := range map[string]string{
		"":                                       "not a webhook secret: it must begin with whsec_",
		secretText[6:]:                           "not a webhook secret: it must begin with whsec_",
		"WHSEC_" + secretText[6:]:                "not a webhook secret: it must begin with whsec_",
		"whsec_":                                 size,
		secretOf(23):                             size,
		secretOf(65):                             size,
		secretOf(1_000_000):                      size,
		"whsec_!!!not base64!!!":                 form,
		secretText + "=":                         form,
		secretText + "\n":                        form,
		secretText[:20] + "\n" + secretText[20:]: form,
		secretText + " ":                         form,
		"whsec_" + strings.Repeat("-_", 20):      form, // the alphabet of URLs
		"whsec_" + strings.Repeat("a", 33):       form,
	} {
		_, err := webhook.ParseSecret(text)
		if !errors.Is(err, webhook.ErrSecret) {
			t.Errorf("%.60q: got %v, want ErrSecret", text, err)
			continue
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("%.60q: %s", text, diff)
		}
	}
}

func TestSecretIsNotPrinted(t *testing.T) {
	t.Parallel()
	parsed := secret(t, "whsec_"+base64.StdEncoding.EncodeToString([]byte("the very secret key of a receiver")))
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("made", "secret", parsed)
	printed := fmt.Sprintf("%v %+v %#v %s %q %x %v", parsed, parsed, parsed, parsed, parsed, parsed, webhook.Target{Secrets: []webhook.Secret{parsed}})
	for _, part := range []string{"very secret", fmt.Sprintf("%x", "very secret")} {
		if strings.Contains(printed, part) || strings.Contains(log.String(), part) {
			t.Errorf("printed %s and logged %s", printed, log.String())
		}
	}
}

func FuzzParseSecret(f *testing.F) {
	f.Add(secretText)
	f.Add(secretOf(64))
	f.Add("whsec_=")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := webhook.ParseSecret(text)
		decoded, plain := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimPrefix(text, "whsec_"), "="))
		switch {
		case err != nil && !errors.Is(err, webhook.ErrSecret):
			t.Fatalf("%q: %v", text, err)
		case err == nil && (plain != nil || len(decoded) < 24 || len(decoded) > 64):
			t.Fatalf("%q was accepted", text)
		}
	})
}
