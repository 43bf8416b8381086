package credential

import (
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	assertionType     = "app+jwt"
	assertionLifetime = 120 // seconds
	maxJTI            = 128 // characters
)

// An Assertion is a verified proof that a request comes from an app. Its JTI must still be spent: it is good once for its
// key.
type Assertion struct {
	KeyID   string
	App     string
	JTI     string
	Expires time.Time // from when on it is refused in any case, clock skew included; until then its JTI must be remembered
}

// assertionClaims are the claims of an assertion; nil is absent.
type assertionClaims struct {
	Issuer   *string  `json:"iss"`
	Subject  *string  `json:"sub"`
	Audience *string  `json:"aud"`
	Issued   *float64 `json:"iat"`
	Expires  *float64 `json:"exp"`
	ID       *string  `json:"jti"`
}

// An AssertionVerifier checks assertions. It remembers the headers of good ones, which are the same for every assertion of a
// key. The zero value is ready to use; safe for concurrent use.
type AssertionVerifier struct {
	headers headerCache
}

// Verify checks the assertion a request came with: a compact JWS, EdDSA, typ app+jwt, that lives 120 seconds at most, is meant
// for one of the audiences and speaks for the app or key that signed it. docs/wire.md §1 has the rules.
//
// lookup gives the public key of a key's id and the app it belongs to, or an error that wraps [ErrUnknownKey]. Any other
// error of lookup is passed on, wrapped; every other failure wraps [ErrRefused]. The signature is checked by the key that
// lookup gave and by no other; a key in the header counts for nothing.
func (v *AssertionVerifier) Verify(
	token string, lookup func(kid string) (public ed25519.PublicKey, app string, err error), audiences []string, now time.Time,
) (Assertion, error) {
	var app string
	payload, kid, err := openJWS(token, assertionType, &v.headers, func(kid string) (ed25519.PublicKey, error) {
		if !isKeyID(kid) {
			return nil, ErrUnknownKey
		}
		public, owner, err := lookup(kid)
		if err != nil {
			return nil, fmt.Errorf("looking up the key of an assertion: %w", err)
		}
		app = owner
		return public, nil
	})
	if err != nil {
		return Assertion{}, err
	}
	var claims assertionClaims
	if err := readClaims(payload, &claims); err != nil {
		return Assertion{}, err
	}
	if err := claims.check(app, kid, audiences, now); err != nil {
		return Assertion{}, err
	}
	expires := timeOf(*claims.Expires).Add(clockSkew)
	return Assertion{KeyID: kid, App: app, JTI: *claims.ID, Expires: expires}, nil
}

func (c assertionClaims) check(app, kid string, audiences []string, now time.Time) error {
	if err := checkTimes(c.Issued, c.Expires, now); err != nil {
		return err
	}
	switch {
	case *c.Expires-*c.Issued > assertionLifetime:
		return refuse(fmt.Sprintf("it lives longer (exp - iat) than %d seconds", assertionLifetime))
	case c.Issuer == nil || (*c.Issuer != app && *c.Issuer != kid):
		return refuse("the issuer (iss) must be the app's id or the key's id")
	case c.Subject == nil || *c.Subject != *c.Issuer:
		return refuse("the subject (sub) must be the same as the issuer (iss)")
	case c.Audience == nil || !slices.Contains(audiences, *c.Audience):
		return refuse("the audience (aud) must be the address of this core with /api/apps")
	case c.ID == nil || *c.ID == "" || utf8.RuneCountInString(*c.ID) > maxJTI:
		return refuse(fmt.Sprintf("the id (jti) must have 1 to %d characters", maxJTI))
	case strings.ContainsFunc(*c.ID, unicode.IsControl):
		return refuse("the id (jti) may not hold control characters")
	}
	return nil
}

// isKeyID reports whether kid has the form of a key's id, so that nothing else is ever looked up.
func isKeyID(kid string) bool {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return len(kid) == keyIDLength && strings.Trim(kid, alphabet) == ""
}
