package credential_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/credential"
)

// One key in both forms, and its kid, as another program made them: the seed is the bytes 0 to 31.
const (
	countingKey = "wst_1116qJFWMMHFy3xDdLmvUeyc2S6FrWRhJP51HsvDYdz9fWXzSV"
	olderKey    = "wst_test_crawler_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
	countingKID = "Vkdap1RjR0wChd9dvyvKtw"
)

func TestParseAppKey(t *testing.T) {
	t.Parallel()
	zeros := "wst_" + strings.Repeat("1", 44) + "e8AP6"
	for text, want := range map[string]struct{ kid, app string }{
		countingKey:                 {countingKID, ""},
		olderKey:                    {countingKID, "crawler"},
		"  " + countingKey + "\r\n": {countingKID, ""},
		strings.Replace(olderKey, "test_crawler", "live_a-1", 1): {countingKID, "a-1"},
		"wst_" + strings.Repeat("1", 45) + zeros[len(zeros)-5:]:  {"E545QOZLVJFyIIjZoNdBYg", ""},
		"wst_2wkBET2rRgE8pahuaczxKbmv7ciehqsne57F9gtzf1PVd47xta": {"r4IpWPLXWvuR-Kj02iUyMA", ""},
		"wst_live_x9_" + strings.Repeat("_", 42) + "8":           {"r4IpWPLXWvuR-Kj02iUyMA", "x9"},
	} {
		key, err := credential.ParseAppKey(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got := []string{credential.KeyID(key.PublicKey()), key.App(), key.Reveal()}
		if diff := cmp.Diff([]string{want.kid, want.app, strings.TrimSpace(text)}, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestParseAppKeyRefuses(t *testing.T) {
	t.Parallel()
	const checksum = "not an app key: its checksum does not match, so a character is wrong"
	const older = "not an app key: the older form is wst_test_ or wst_live_, the app's id, _ and 43 characters"
	for text, want := range map[string]string{
		"":                               "not an app key: it must begin with wst_",
		"WST_" + countingKey[4:]:         "not an app key: it must begin with wst_",
		"wst_":                           "not an app key: 50 characters must follow wst_",
		countingKey + "1":                "not an app key: 50 characters must follow wst_",
		countingKey[:53]:                 "not an app key: 50 characters must follow wst_",
		countingKey[:53] + "W":           checksum,
		countingKey[:53] + "0":           "not an app key: a character is wrong",
		countingKey[:53] + "l":           "not an app key: a character is wrong",
		"wst_é" + countingKey[6:]:        "not an app key: a character is wrong",
		"wst_" + strings.Repeat("z", 50): "not an app key: a character is wrong", // beyond 36 bytes
		olderKey + "A":                   older,
		olderKey[:len(olderKey)-1]:       older,
		olderKey[:len(olderKey)-1] + "=": older,
		strings.Replace(olderKey, "crawler", "C", 1): older,
		strings.Replace(olderKey, "crawler", "a", 1): older,
		strings.Replace(olderKey, "test", "prod", 1): older,
		olderKey[:len(olderKey)-1] + "9":             "not an app key: its last character is wrong",
		"wst_" + strings.Repeat("_", 100_000):        older,
		"wst_" + strings.Repeat("1", 100_000):        "not an app key: 50 characters must follow wst_",
	} {
		key, err := credential.ParseAppKey(text)
		if !errors.Is(err, credential.ErrAppKey) {
			t.Errorf("%.60q: got %v, want ErrAppKey", text, err)
			continue
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("%.60q: %s", text, diff)
		}
		if key != (credential.AppKey{}) {
			t.Errorf("%.60q: refused, but with a key", text)
		}
	}
}

func TestGenerateAppKey(t *testing.T) {
	t.Parallel()
	var counting [32]byte
	for i := range counting {
		counting[i] = byte(i)
	}
	key, err := credential.GenerateAppKey(bytes.NewReader(counting[:]))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(countingKey, key.Reveal()); diff != "" {
		t.Error(diff)
	}
	if signature := ed25519.Sign(key.PrivateKey(), []byte("x")); !ed25519.Verify(key.PublicKey(), []byte("x"), signature) {
		t.Error("the halves do not belong together")
	}
	first, err := credential.GenerateAppKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := credential.GenerateAppKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if first.Reveal() == second.Reveal() {
		t.Error("two keys are the same")
	}
	if _, err := credential.GenerateAppKey(iotest.ErrReader(errors.New("no bits"))); err == nil {
		t.Error("a key was made of nothing")
	}
}

func TestAppKeyIsNotPrinted(t *testing.T) {
	t.Parallel()
	key, err := credential.ParseAppKey(countingKey)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("made", "key", key, "keys", []credential.AppKey{key})
	printed := fmt.Sprintf("%v %+v %#v %s %q %d %x %v %+v", key, key, key, key, key, key, key, &key, struct{ K credential.AppKey }{key})
	for _, secret := range []string{countingKey[4:], "0 1 2 3 4", "000102", "0x1, 0x2"} {
		if strings.Contains(printed, secret) || strings.Contains(log.String(), secret) {
			t.Errorf("printed %s and logged %s", printed, log.String())
		}
	}
}

func FuzzParseAppKey(f *testing.F) {
	for _, seed := range []string{countingKey, olderKey, "wst_", "wst_live_a_", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := credential.ParseAppKey(text)
		if err != nil {
			if !errors.Is(err, credential.ErrAppKey) || len(text) > 20 && strings.Contains(err.Error(), text) {
				t.Fatalf("got %v", err)
			}
			return
		}
		if key.Reveal() != strings.TrimSpace(text) {
			t.Fatalf("%q is shown as %q", text, key.Reveal())
		}
		if key.App() != "" {
			return
		}
		again, err := credential.GenerateAppKey(bytes.NewReader(key.PrivateKey().Seed()))
		if err != nil || again != key {
			t.Fatalf("another spelling of the key is %q: %v", again.Reveal(), err)
		}
	})
}
