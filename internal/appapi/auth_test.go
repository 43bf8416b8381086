package appapi_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/appapi"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/refusal"
)

// withToken asks who the caller is, with that Authorization header.
func (l *lab) withToken(authorization string) reply {
	r := httptest.NewRequest(http.MethodGet, appapi.Prefix+"/app", nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return answered(l.api, r)
}

func claim(name string, value any) func(header, claims members) {
	return func(_, claims members) { claims[name] = value }
}

func head(name string, value any) func(header, claims members) {
	return func(header, _ members) { header[name] = value }
}

func TestWhoIsNotLetIn(t *testing.T) {
	t.Parallel()
	l := setup(t)
	key, err := credential.GenerateAppKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	stranger := caller{"crawler", key, l.api}
	other := l.another()
	now := time.Now().Unix()
	good := l.app.assertion(t)
	parts := strings.Split(good, ".")
	unsigned := func(header members) string {
		return encoded(t, header) + "." + parts[1] + "."
	}
	symmetric := func() string {
		signed := encoded(t, members{"alg": "HS256", "typ": "app+jwt", "kid": credential.KeyID(l.Key.PublicKey())}) + "." + parts[1]
		mac := hmac.New(sha256.New, l.Key.PublicKey())
		mac.Write([]byte(signed))
		return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	const form = "the Authorization header must be Bearer and an assertion"
	for name, c := range map[string]struct{ authorization, says string }{
		"nothing":              {"", form},
		"a scheme alone":       {"Bearer", form},
		"a scheme and a space": {"Bearer ", form},
		"another scheme":       {"Basic " + good, form},
		"no scheme":            {good, form},
		"no JWS":               {"Bearer x", "refused: not a compact JWS: three parts with dots between them"},
		"four parts":           {"Bearer " + good + ".x", "refused: not a compact JWS: three parts with dots between them"},
		"a word behind it":     {"Bearer " + good + " x", "refused: not a compact JWS: each part must be base64url without padding"},
		"200,000 bytes":        {"Bearer a." + strings.Repeat("b", 200_000) + ".c", "refused: longer than 8192 bytes"},
		"expired":              {"Bearer " + l.app.assertion(t, claim("iat", now-700), claim("exp", now-580)), "refused: it has expired (exp)"},
		"issued in the future": {"Bearer " + l.app.assertion(t, claim("iat", now+600), claim("exp", now+660)), "refused: it is issued (iat) in the future: check the clock"},
		"living 121 s":         {"Bearer " + l.app.assertion(t, claim("iat", now), claim("exp", now+121)), "refused: it lives longer (exp - iat) than 120 seconds"},
		"for another core":     {"Bearer " + l.app.assertion(t, claim("aud", "https://other.example/api/apps")), "refused: the audience (aud) must be the address of this core with /api/apps"},
		"without a jti":        {"Bearer " + l.app.assertion(t, claim("jti", nil)), "refused: the id (jti) must have 1 to 128 characters"},
		"alg none":             {"Bearer " + unsigned(members{"alg": "none", "typ": "app+jwt", "kid": credential.KeyID(l.Key.PublicKey())}), "refused: not a compact JWS: each part must be base64url without padding"},
		"alg none, signed":     {"Bearer " + l.app.assertion(t, head("alg", "none")), "refused: the algorithm (alg) must be EdDSA"},
		"alg HS256":            {"Bearer " + symmetric(), "refused: the algorithm (alg) must be EdDSA"},
		"another typ":          {"Bearer " + l.app.assertion(t, head("typ", "JWT")), "refused: the type (typ) must be app+jwt"},
		"an unknown key":       {"Bearer " + stranger.assertion(t), "refused: signed with an unknown key"},
		"another's signature": {"Bearer " + stranger.assertion(t, head("kid", credential.KeyID(l.Key.PublicKey())),
			claim("iss", "crawler"), claim("sub", "crawler")), "refused: the signature does not match"},
		"another's content": {"Bearer " + parts[0] + "." + strings.Split(l.app.assertion(t), ".")[1] + "." + parts[2], "refused: the signature does not match"},
		"another app": {"Bearer " + other.assertion(t, claim("iss", "crawler"), claim("sub", "crawler")),
			"refused: the issuer (iss) must be the app's id or the key's id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := l.withToken(c.authorization)
			if says := got.says(t); says != "unauthorized: "+c.says {
				t.Errorf("got %s", says)
			}
			if got.header.Get("WWW-Authenticate") != "Bearer" {
				t.Error("it does not say how to authenticate")
			}
			repeatsNothing(t, got, c.authorization)
		})
	}
}

// repeatsNothing fails when an answer holds a part of what the caller came with.
func repeatsNothing(t *testing.T, got reply, authorization string) {
	t.Helper()
	for part := range strings.FieldsFuncSeq(authorization, func(r rune) bool { return r == '.' || r == ' ' }) {
		pieces := []string{part}
		if decoded, err := base64.RawURLEncoding.DecodeString(part); err == nil {
			pieces = append(pieces, string(decoded))
		}
		for _, piece := range pieces {
			if len(piece) > 6 && strings.Contains(string(got.body), piece[:min(len(piece), 40)]) {
				t.Errorf("the answer repeats what was sent: %s", got.body)
			}
		}
	}
}

func TestWhoIsLetIn(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for name, authorization := range map[string]string{
		"the key's id":        "Bearer " + l.app.assertion(t),
		"the app's id":        "Bearer " + l.app.assertion(t, claim("iss", "crawler"), claim("sub", "crawler")),
		"a scheme in capital": "BEARER " + l.app.assertion(t),
		"two spaces":          "Bearer  " + l.app.assertion(t),
	} {
		if got := l.withToken(authorization).good(t); got["id"] != "crawler" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAnAssertionIsGoodOnce(t *testing.T) {
	t.Parallel()
	l := setup(t)
	const says = "unauthorized: the assertion was used before: sign a new one for each request"
	token := "Bearer " + l.app.assertion(t)
	l.withToken(token).good(t)
	if got := l.withToken(token).says(t); got != says {
		t.Errorf("again: %s", got)
	}
	elsewhere := httptest.NewRequest(http.MethodGet, appapi.Prefix+"/topics/status?topic=x", nil)
	elsewhere.Header.Set("Authorization", token)
	if got := answered(l.api, elsewhere).says(t); got != says {
		t.Errorf("another call: %s", got)
	}

	token = "Bearer " + l.app.assertion(t)
	var accepted atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if l.withToken(token).status == http.StatusOK {
				accepted.Add(1)
			}
		})
	}
	all.Wait()
	if accepted.Load() != 1 {
		t.Errorf("at once: accepted %d times", accepted.Load())
	}
}

func TestARevokedKeyIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	l := setup(t)
	l.app.send(t, "GET", "/app", "").good(t)
	if err := l.Core.RevokeKey(t.Context(), "crawler", credential.KeyID(l.Key.PublicKey())); err != nil {
		t.Fatal(err)
	}
	if got := l.app.send(t, "GET", "/app", "").says(t); got != "unauthorized: refused: signed with an unknown key" {
		t.Error(got)
	}
}

// An app may have several keys, and may bring the public half of one it made itself.
func TestAFurtherKeyIsLetIn(t *testing.T) {
	t.Parallel()
	l := setup(t)
	key, err := credential.GenerateAppKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Core.AddKey(t.Context(), "crawler", "second", ed25519.PublicKey(key.PublicKey())); err != nil {
		t.Fatal(err)
	}
	second := caller{"crawler", key, l.api}
	if got := second.send(t, "GET", "/app", "").good(t); got.at("key", "name") != "second" {
		t.Error(got)
	}
}

func TestEveryCallNeedsAnAssertion(t *testing.T) {
	t.Parallel()
	l := setup(t)
	for _, route := range calls {
		r := httptest.NewRequest(route.method, appapi.Prefix+route.path, strings.NewReader(route.good))
		if code, _ := answered(l.api, r).refused(t); code != refusal.Unauthorized {
			t.Errorf("%s %s: %s", route.method, route.path, code)
		}
	}
	if got := l.app.post(t, "/events/emit", emitJob("j", "t")); got["matched"] != 0.0 {
		t.Errorf("a call without an assertion subscribed somebody: %v", got)
	}
}
