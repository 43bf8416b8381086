package wakeshift_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	seed := bytes.Repeat([]byte{7}, 32)
	current := formatKey(seed)
	older := "wst_test_my-app_" + base64.RawURLEncoding.EncodeToString(seed)
	// The kid is the base64url of the first half of the public key's SHA-256.
	const kid = "_oEsEvOrTOasXbaaw1L5Bg"
	for name, test := range map[string]struct {
		key  string
		want wakeshift.ParsedKey
	}{
		"current":       {current, wakeshift.ParsedKey{KID: kid}},
		"white space":   {" \n" + current + "\t", wakeshift.ParsedKey{KID: kid}},
		"older, test":   {older, wakeshift.ParsedKey{KID: kid, App: "my-app", Test: true}},
		"older, live":   {strings.Replace(older, "test", "live", 1), wakeshift.ParsedKey{KID: kid, App: "my-app"}},
		"leading zeros": {formatKey(make([]byte, 32)), wakeshift.ParsedKey{KID: "E545QOZLVJFyIIjZoNdBYg"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := wakeshift.ParseKey(test.key)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("key (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	seed := base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	current, _ := newKey()
	swapped := []byte(current)
	for i := 10; ; i++ { // two neighbours that differ
		if swapped[i] != swapped[i+1] {
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
			break
		}
	}
	for name, key := range map[string]string{
		"other prefix":        "sk_" + current[4:],
		"too short":           current[:53],
		"too long":            current + "1",
		"not base58":          current[:53] + "0",
		"over 36 bytes":       "wst_" + strings.Repeat("z", 50),
		"checksum":            string(swapped),
		"older, mode":         "wst_prod_my-app_" + seed,
		"older, app":          "wst_test_A_" + seed,
		"older, short seed":   "wst_test_my-app_" + seed[:42],
		"older, stray bits":   "wst_test_my-app_" + seed[:42] + "d",
		"older, not base64":   "wst_test_my-app_" + seed[:42] + "+",
		"older, without app":  "wst_test_" + seed,
		"only the prefix":     "wst_",
		"unicode":             "wst_" + strings.Repeat("ü", 25),
		"a newline in itself": current[:20] + "\n" + current[21:],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := wakeshift.ParseKey(key)
			if err == nil {
				t.Fatal("accepted")
			}
			if len(key) > 8 && strings.Contains(err.Error(), key[4:12]) {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

// A key must not be shown by printing what holds it.
func TestKeyIsNotPrinted(t *testing.T) {
	t.Parallel()
	seed := bytes.Repeat([]byte{0xA7}, 32)
	wake, err := wakeshift.New(wakeshift.WithKey(formatKey(seed)))
	if err != nil {
		t.Fatal(err)
	}
	defer wake.Close()
	for _, format := range []string{"%v", "%+v", "%#v", "%x", "%s"} {
		text := strings.ToLower(fmt.Sprintf(format, wake))
		for _, part := range []string{"167 167 167", "a7a7a7", "0xa7, 0xa7", string(seed[:8])} {
			if strings.Contains(text, part) {
				t.Errorf("%s shows the key", format)
			}
		}
	}
}

func FuzzParseKey(f *testing.F) {
	key, _ := newKey()
	f.Add(key)
	f.Add("wst_test_my-app_" + strings.Repeat("A", 43))
	f.Add("wst_")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := wakeshift.ParseKey(text)
		if err != nil {
			if body := strings.TrimSpace(text); len(body) > 20 && strings.Contains(err.Error(), body) {
				t.Errorf("the error shows the key")
			}
			return
		}
		if len(parsed.KID) != 22 || !strings.HasPrefix(strings.TrimSpace(text), "wst_") {
			t.Errorf("accepted with the kid %q", parsed.KID)
		}
	})
}
