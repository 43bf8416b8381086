package credential_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/credential"
)

const (
	app      = "crawler"
	audience = "https://core.example/api/apps"
)

var (
	appKey    = privateKey("the app's key")
	stranger  = privateKey("a stranger's key")
	kid       = credential.KeyID(appKey.Public().(ed25519.PublicKey))
	verifier  credential.AssertionVerifier // one for all, as in a core, so that most tests meet a header it knows
	audiences = []string{audience, "http://127.0.0.1:8080/api/apps"}
)

func lookup(id string) (ed25519.PublicKey, string, error) {
	if id != kid {
		return nil, "", credential.ErrUnknownKey
	}
	return appKey.Public().(ed25519.PublicKey), app, nil
}

func goodHeader() members { return members{"alg": "EdDSA", "typ": "app+jwt", "kid": kid} }

func goodClaims() members {
	return members{"iss": kid, "sub": kid, "aud": audience, "iat": now.Unix(), "exp": now.Unix() + 120, "jti": "once"}
}

func TestVerifyAssertionAccepts(t *testing.T) {
	t.Parallel()
	at := now.Unix()
	jwk := map[string]string{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(stranger.Public().(ed25519.PublicKey))}
	for name, c := range map[string]struct{ header, claims members }{
		"plain":                     {},
		"the app as issuer":         {claims: members{"iss": app, "sub": app}},
		"another audience":          {claims: members{"aud": audiences[1]}},
		"unknown members":           {members{"cty": "x", "n": []int{1}, "ALG": "none"}, members{"nbf": at + 999, "scope": "all", "ISS": "x"}},
		"an embedded key":           {header: members{"jwk": jwk}},
		"issued 30 s ahead":         {claims: members{"iat": at + 30, "exp": at + 150}},
		"expired 29 s ago":          {claims: members{"iat": at - 149, "exp": at - 29}},
		"fractions of a second":     {claims: members{"iat": float64(at) + 0.25, "exp": float64(at) + 120.25}},
		"one second of life":        {claims: members{"exp": at + 1}},
		"a jti of 128 characters":   {claims: members{"jti": strings.Repeat("é", 128)}},
		"a jti of other characters": {claims: members{"jti": "a/b.c~ d"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claims := goodClaims().with(c.claims)
			got, err := verifier.Verify(sign(t, appKey, goodHeader().with(c.header), claims), lookup, audiences, now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{kid, app, claims["jti"]}, []any{got.KeyID, got.App, got.JTI}); diff != "" {
				t.Error(diff)
			}
			if _, err := verifier.Verify(sign(t, appKey, goodHeader(), claims), lookup, audiences, got.Expires); err == nil {
				t.Errorf("still accepted when it expires, at %v", got.Expires)
			}
			if _, err := verifier.Verify(sign(t, appKey, goodHeader(), claims), lookup, audiences, got.Expires.Add(-time.Second)); err != nil {
				t.Errorf("refused a second before it expires: %v", err)
			}
		})
	}
}

func TestVerifyAssertionRefusesHeaders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header any
		want   string
	}{
		"alg none":           {goodHeader().with(members{"alg": "none"}), "refused: the algorithm (alg) must be EdDSA"},
		"alg eddsa":          {goodHeader().with(members{"alg": "eddsa"}), "refused: the algorithm (alg) must be EdDSA"},
		"alg Ed25519":        {goodHeader().with(members{"alg": "Ed25519"}), "refused: the algorithm (alg) must be EdDSA"},
		"alg HS256":          {goodHeader().with(members{"alg": "HS256"}), "refused: the algorithm (alg) must be EdDSA"},
		"alg empty":          {goodHeader().with(members{"alg": ""}), "refused: the algorithm (alg) must be EdDSA"},
		"no alg":             {goodHeader().with(members{"alg": nil}), "refused: the algorithm (alg) must be EdDSA"},
		"typ JWT":            {goodHeader().with(members{"typ": "JWT"}), "refused: the type (typ) must be app+jwt"},
		"typ in capitals":    {goodHeader().with(members{"typ": "APP+JWT"}), "refused: the type (typ) must be app+jwt"},
		"no typ":             {goodHeader().with(members{"typ": nil}), "refused: the type (typ) must be app+jwt"},
		"crit":               {goodHeader().with(members{"crit": []string{"exp"}}), "refused: critical header members (crit) are not supported"},
		"crit empty":         {goodHeader().with(members{"crit": []string{}}), "refused: critical header members (crit) are not supported"},
		"crit null":          {`{"alg":"EdDSA","typ":"app+jwt","kid":"` + kid + `","crit":null}`, "refused: critical header members (crit) are not supported"},
		"b64":                {goodHeader().with(members{"b64": false}), "refused: the header member b64 is not supported"},
		"kid of a stranger":  {goodHeader().with(members{"kid": credential.KeyID(stranger.Public().(ed25519.PublicKey))}), "refused: signed with an unknown key"},
		"kid too long":       {goodHeader().with(members{"kid": kid + "A"}), "refused: signed with an unknown key"},
		"kid with a slash":   {goodHeader().with(members{"kid": "../../../../../../etc/p"}), "refused: signed with an unknown key"},
		"no kid":             {goodHeader().with(members{"kid": nil}), "refused: signed with an unknown key"},
		"kid a number":       {goodHeader().with(members{"kid": 7}), "refused: the header is no object of strict JSON with alg, typ and kid as strings"},
		"a member twice":     {`{"alg":"none","typ":"app+jwt","kid":"` + kid + `","alg":"EdDSA"}`, "refused: the header is no object of strict JSON with alg, typ and kid as strings"},
		"an array":           {`[]`, "refused: the header is no object of strict JSON with alg, typ and kid as strings"},
		"null":               {`null`, "refused: the header is no object of strict JSON with alg, typ and kid as strings"},
		"a broken key in it": {goodHeader().with(members{"jwk": 7}), "refused: not a compact JWS signed with EdDSA"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuses(t, sign(t, appKey, c.header, goodClaims()), c.want)
		})
	}
}

func TestVerifyAssertionRefusesClaims(t *testing.T) {
	t.Parallel()
	at := now.Unix()
	for name, c := range map[string]struct {
		claims members
		want   string
	}{
		"expired":             {members{"iat": at - 700, "exp": at - 580}, "refused: it has expired (exp)"},
		"expired 30 s ago":    {members{"iat": at - 150, "exp": at - 30}, "refused: it has expired (exp)"},
		"in the future":       {members{"iat": at + 600, "exp": at + 720}, "refused: it is issued (iat) in the future: check the clock"},
		"31 s ahead":          {members{"iat": at + 31, "exp": at + 151}, "refused: it is issued (iat) in the future: check the clock"},
		"121 s":               {members{"exp": at + 121}, "refused: it lives longer (exp - iat) than 120 seconds"},
		"a hair over 120 s":   {members{"exp": float64(at) + 120.001}, "refused: it lives longer (exp - iat) than 120 seconds"},
		"a year":              {members{"exp": at + 31_536_000}, "refused: it lives longer (exp - iat) than 120 seconds"},
		"issued long ago":     {members{"iat": at - 3500, "exp": at + 100}, "refused: it lives longer (exp - iat) than 120 seconds"},
		"no life":             {members{"exp": at}, "refused: it expires (exp) before it is issued (iat)"},
		"exp before iat":      {members{"exp": at - 1}, "refused: it expires (exp) before it is issued (iat)"},
		"exp negative":        {members{"exp": -1}, "refused: it expires (exp) before it is issued (iat)"},
		"iat negative":        {members{"iat": -1}, "refused: the claims iat and exp must be seconds since 1970"},
		"exp astronomical":    {members{"exp": 1e300}, "refused: the claims iat and exp must be seconds since 1970"},
		"no iat":              {members{"iat": nil}, "refused: the claim iat is missing"},
		"no exp":              {members{"exp": nil}, "refused: the claim exp is missing"},
		"exp a string":        {members{"exp": "soon"}, "refused: the claim exp: must be a number"},
		"iat true":            {members{"iat": true}, "refused: the claim iat: must be a number"},
		"no iss":              {members{"iss": nil}, "refused: the issuer (iss) must be the app's id or the key's id"},
		"iss a number":        {members{"iss": 7}, "refused: the claim iss: must be a string"},
		"iss of a stranger":   {members{"iss": "someone", "sub": "someone"}, "refused: the issuer (iss) must be the app's id or the key's id"},
		"iss empty":           {members{"iss": "", "sub": ""}, "refused: the issuer (iss) must be the app's id or the key's id"},
		"no sub":              {members{"sub": nil}, "refused: the subject (sub) must be the same as the issuer (iss)"},
		"sub of a stranger":   {members{"sub": "someone"}, "refused: the subject (sub) must be the same as the issuer (iss)"},
		"iss kid and sub app": {members{"sub": app}, "refused: the subject (sub) must be the same as the issuer (iss)"},
		"no aud":              {members{"aud": nil}, "refused: the audience (aud) must be the address of this core with /api/apps"},
		"aud of another core": {members{"aud": "https://other.example/api/apps"}, "refused: the audience (aud) must be the address of this core with /api/apps"},
		"aud with a slash":    {members{"aud": audience + "/"}, "refused: the audience (aud) must be the address of this core with /api/apps"},
		"aud a list":          {members{"aud": []string{audience}}, "refused: the claim aud: must be a string"},
		"no jti":              {members{"jti": nil}, "refused: the id (jti) must have 1 to 128 characters"},
		"jti empty":           {members{"jti": ""}, "refused: the id (jti) must have 1 to 128 characters"},
		"jti of 129":          {members{"jti": strings.Repeat("x", 129)}, "refused: the id (jti) must have 1 to 128 characters"},
		"jti with NUL":        {members{"jti": "a\x00"}, "refused: the id (jti) may not hold control characters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuses(t, sign(t, appKey, goodHeader(), goodClaims().with(c.claims)), c.want)
		})
	}
}

func TestVerifyAssertionRefusesTokens(t *testing.T) {
	t.Parallel()
	good := sign(t, appKey, goodHeader(), goodClaims())
	parts := strings.Split(good, ".")
	head, body, mark := parts[0], parts[1], parts[2]
	mac := hmac.New(sha256.New, appKey.Public().(ed25519.PublicKey))
	mac.Write([]byte(head + "." + body))
	const threeParts = "refused: not a compact JWS: three parts with dots between them"
	const encoding = "refused: not a compact JWS: each part must be base64url without padding"
	for name, c := range map[string]struct{ token, want string }{
		"nothing":              {"", threeParts},
		"a word":               {"x", threeParts},
		"two parts":            {head + "." + body, threeParts},
		"four parts":           {good + ".x", threeParts},
		"JSON serialization":   {`{"payload":"e30","protected":"` + head + `","signature":"` + mark + `"}`, threeParts},
		"empty parts":          {"..", encoding},
		"no header":            {"." + body + "." + mark, encoding},
		"no payload":           {head + ".." + mark, encoding},
		"no signature":         {head + "." + body + ".", encoding},
		"padding":              {good + "==", encoding},
		"a line break":         {good[:50] + "\n" + good[50:], encoding},
		"a space":              {" " + good, encoding},
		"last bits set":        {good[:len(good)-1] + "_", encoding},
		"standard alphabet":    {head + "." + body + "." + strings.Repeat("+", 86), encoding},
		"header not JSON":      {part(t, "7x") + "." + body + "." + mark, "refused: the header is no object of strict JSON with alg, typ and kid as strings"},
		"another body":         {head + "." + part(t, goodClaims().with(members{"jti": "twice"})) + "." + mark, "refused: the signature does not match"},
		"another signer":       {sign(t, stranger, goodHeader(), goodClaims()), "refused: the signature does not match"},
		"an embedded signer":   {sign(t, stranger, goodHeader().with(members{"jwk": okp(stranger)}), goodClaims()), "refused: the signature does not match"},
		"an HMAC":              {head + "." + body + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), "refused: the signature must have 64 bytes"},
		"claims an array":      {sign(t, appKey, goodHeader(), "[]"), "refused: the claims are no object of strict JSON"},
		"claims a number":      {sign(t, appKey, goodHeader(), "7"), "refused: the claims are no object of strict JSON"},
		"a claim twice":        {sign(t, appKey, goodHeader(), `{"iss":"a","iss":"b"}`), "refused: the claims are no object of strict JSON"},
		"longer than 8 KiB":    {sign(t, appKey, goodHeader().with(members{"x": strings.Repeat("y", 8<<10)}), goodClaims()), "refused: longer than 8192 bytes"},
		"200,000 characters":   {"a." + strings.Repeat("b", 200_000) + ".c", "refused: longer than 8192 bytes"},
		"8 KiB of dots":        {strings.Repeat(".", 8<<10), threeParts},
		"delete characters":    {strings.Repeat("\x7f", 20), threeParts},
		"an unsigned good one": {part(t, goodHeader().with(members{"alg": "none"})) + "." + body + ".", encoding},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuses(t, c.token, c.want)
		})
	}
}

func okp(key ed25519.PrivateKey) any {
	return map[string]string{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(key.Public().(ed25519.PublicKey))}
}

func refuses(t *testing.T, token, want string) {
	t.Helper()
	got, err := verifier.Verify(token, lookup, audiences, now)
	if !errors.Is(err, credential.ErrRefused) {
		t.Fatalf("got %+v, %v, want a refusal", got, err)
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(credential.Assertion{}, got); diff != "" {
		t.Error(diff)
	}
}

func TestVerifyAssertionPassesOtherErrorsOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("the database is gone")
	_, err := verifier.Verify(sign(t, appKey, goodHeader(), goodClaims()),
		func(string) (ed25519.PublicKey, string, error) { return nil, "", broken }, audiences, now)
	if !errors.Is(err, broken) || errors.Is(err, credential.ErrRefused) {
		t.Errorf("got %v, want the lookup's error and no refusal", err)
	}
}

// A header that is known spares its reading and nothing else.
func TestVerifyAssertionWithAKnownHeader(t *testing.T) {
	t.Parallel()
	header := goodHeader().with(members{"x": "this test's own"})
	good := sign(t, appKey, header, goodClaims())
	head, rest, _ := strings.Cut(good, ".")
	body, mark, _ := strings.Cut(rest, ".")
	unknown := func(string) (ed25519.PublicKey, string, error) { return nil, "", credential.ErrUnknownKey }
	other := func(string) (ed25519.PublicKey, string, error) {
		return stranger.Public().(ed25519.PublicKey), app, nil
	}
	for name, c := range map[string]struct {
		token  string
		lookup func(string) (ed25519.PublicKey, string, error)
		want   string
	}{
		"good":               {good, lookup, ""},
		"another signer":     {sign(t, stranger, header, goodClaims()), lookup, "refused: the signature does not match"},
		"another body":       {head + "." + part(t, goodClaims().with(members{"jti": "twice"})) + "." + mark, lookup, "refused: the signature does not match"},
		"a short signature":  {head + "." + body + "." + mark[:84], lookup, "refused: the signature must have 64 bytes"},
		"expired":            {sign(t, appKey, header, goodClaims().with(members{"iat": now.Unix() - 700, "exp": now.Unix() - 580})), lookup, "refused: it has expired (exp)"},
		"four parts":         {good + ".x", lookup, "refused: not a compact JWS: three parts with dots between them"},
		"its key is revoked": {good, unknown, "refused: signed with an unknown key"},
		"the key is another": {good, other, "refused: the signature does not match"},
		"the key is no key":  {good, func(string) (ed25519.PublicKey, string, error) { return nil, app, nil }, "refused: the signature does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v credential.AssertionVerifier
			for _, state := range []string{"unknown", "known"} {
				_, err := v.Verify(c.token, c.lookup, audiences, now)
				got := ""
				if err != nil {
					got = err.Error()
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("header %s: %s", state, diff)
				}
				if _, err := v.Verify(good, lookup, audiences, now); err != nil {
					t.Fatalf("a good one: %v", err)
				}
			}
		})
	}
}

// A token that was refused does not make its header known.
func TestVerifyAssertionRemembersOnlyWhatHeld(t *testing.T) {
	t.Parallel()
	var v credential.AssertionVerifier
	header := goodHeader().with(members{"jwk": 7})
	for range 2 {
		_, err := v.Verify(sign(t, stranger, header, goodClaims()), lookup, audiences, now)
		if err == nil || err.Error() != "refused: not a compact JWS signed with EdDSA" {
			t.Errorf("got %v", err)
		}
	}
}

// FuzzVerifyAssertion signs whatever header and claims come, and tries them unsigned too.
func FuzzVerifyAssertion(f *testing.F) {
	good, err := json.Marshal(goodClaims())
	if err != nil {
		f.Fatal(err)
	}
	head, err := json.Marshal(goodHeader())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(head), string(good), "a.b.c")
	f.Add(`{"alg":"none"}`, `{"iat":1e400}`, "..")
	f.Add(string(head), `{"iss":null,"exp":-0.0,"iat":1e308}`, sign(f, stranger, goodHeader(), goodClaims()))
	f.Fuzz(func(t *testing.T, head, claims, token string) {
		if _, err := verifier.Verify(token, lookup, audiences, now); !errors.Is(err, credential.ErrRefused) {
			t.Fatalf("unsigned, but got %v", err)
		}
		got, err := verifier.Verify(sign(t, appKey, head, claims), lookup, audiences, now)
		if err != nil {
			if !errors.Is(err, credential.ErrRefused) {
				t.Fatalf("got %v, want a refusal", err)
			}
			return
		}
		var read struct {
			Iss, Sub, Aud, Jti string
			Iat, Exp           float64
		}
		if err := json.Unmarshal([]byte(claims), &read); err != nil {
			t.Fatal(err)
		}
		if read.Iss != read.Sub || read.Aud != audience && read.Aud != audiences[1] || read.Jti != got.JTI || read.Exp-read.Iat > 120 {
			t.Fatalf("accepted %s", claims)
		}
	})
}

func BenchmarkVerifyAssertion(b *testing.B) {
	token := sign(b, appKey, goodHeader(), goodClaims())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := verifier.Verify(token, lookup, audiences, now); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEd25519 is the floor under [BenchmarkVerifyAssertion].
func BenchmarkEd25519(b *testing.B) {
	message := []byte(sign(b, appKey, goodHeader(), goodClaims()))
	signature := ed25519.Sign(appKey, message)
	for b.Loop() {
		if !ed25519.Verify(appKey.Public().(ed25519.PublicKey), message, signature) {
			b.Fatal("the signature does not match")
		}
	}
}
