package credential

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rouse-dev/rouse/internal/strictjson"
)

// ErrRefused says that an assertion or a beacon does not hold. The error around it says why in a few words fit for who sent
// it, and repeats nothing of the token.
var ErrRefused = errors.New("refused")

// ErrUnknownKey is what a lookup of a key returns for one that nobody has, or has any more.
var ErrUnknownKey = errors.New("unknown key")

// clockSkew is how far the clock of who signed may be off, either way.
const clockSkew = 30 * time.Second

// maxTokenBytes bounds a token before anything of it is looked at.
const maxTokenBytes = 8 << 10

func refuse(reason string) error { return fmt.Errorf("%w: %s", ErrRefused, reason) }

// header is what is read of a token's header. Of the rest only crit and b64 matter, which would change what the signature
// covers or demand what is not done here.
type header struct {
	Algorithm string         `json:"alg"`
	Type      string         `json:"typ"`
	KeyID     string         `json:"kid"`
	Critical  jsontext.Value `json:"crit"`
	Base64    jsontext.Value `json:"b64"`
}

// openJWS checks form and signature of a compact JWS (RFC 7515) of that type and returns its payload, still to be checked.
// known, if not nil, holds the headers of that type which need not be read again. keyOf gives the key of an id; its errors pass
// through, but for [ErrUnknownKey], which is a refusal.
func openJWS(
	token, typ string, known *headerCache, keyOf func(kid string) (ed25519.PublicKey, error),
) (payload []byte, kid string, err error) {
	if len(token) > maxTokenBytes {
		return nil, "", refuse(fmt.Sprintf("longer than %d bytes", maxTokenBytes))
	}
	head, payload, signature, err := split(token)
	if err != nil {
		return nil, "", err
	}
	kid, seen := known.get(head)
	if !seen {
		if kid, err = readHeader(head, typ); err != nil {
			return nil, "", err
		}
	}
	if len(signature) != ed25519.SignatureSize {
		return nil, "", refuse(fmt.Sprintf("the signature must have %d bytes", ed25519.SignatureSize))
	}
	key, err := keyOf(kid)
	if errors.Is(err, ErrUnknownKey) {
		return nil, "", refuse("signed with an unknown key")
	}
	if err != nil {
		return nil, "", err
	}
	if !seen {
		// What the library says may repeat parts of the token, so none of it is passed on.
		if _, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA}); err != nil {
			return nil, "", refuse("not a compact JWS signed with EdDSA")
		}
	}
	// The parts are canonical base64url, so what was signed are these very bytes.
	signed := token[:strings.LastIndexByte(token, '.')]
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, []byte(signed), signature) {
		return nil, "", refuse("the signature does not match")
	}
	if !seen {
		known.put(head, kid)
	}
	return payload, kid, nil
}

// split takes a token apart: three parts of strict base64url, of which the header is left as it came, for [readHeader] to decode.
func split(token string) (head string, payload, signature []byte, err error) {
	if strings.Count(token, ".") != 2 {
		return "", nil, nil, refuse("not a compact JWS: three parts with dots between them")
	}
	head, rest, _ := strings.Cut(token, ".")
	body, mark, _ := strings.Cut(rest, ".")
	if payload, err = decodePart(body); err == nil {
		signature, err = decodePart(mark)
	}
	return head, payload, signature, err
}

func decodePart(part string) ([]byte, error) {
	// The decoder passes over line breaks.
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil || part == "" || strings.ContainsAny(part, "\r\n") {
		return nil, refuse("not a compact JWS: each part must be base64url without padding")
	}
	return decoded, nil
}

// readHeader checks that a token's header is one this package takes, and returns the id of its key.
func readHeader(part, typ string) (kid string, err error) {
	decoded, err := decodePart(part)
	if err != nil {
		return "", err
	}
	var head header
	if err := strictjson.Decode(decoded, strictjson.Limits{}, &head); err != nil {
		return "", refuse("the header is no object of strict JSON with alg, typ and kid as strings")
	}
	switch {
	case head.Algorithm != string(jose.EdDSA):
		return "", refuse("the algorithm (alg) must be EdDSA")
	case head.Type != typ:
		return "", refuse("the type (typ) must be " + typ)
	case head.Critical != nil:
		return "", refuse("critical header members (crit) are not supported")
	case head.Base64 != nil:
		return "", refuse("the header member b64 is not supported")
	}
	return head.KeyID, nil
}

// readClaims decodes a verified payload. Of what may be wrong with it, it names one of the claims of into at most.
func readClaims(payload []byte, into any) error {
	err := strictjson.Decode(payload, strictjson.Limits{}, into)
	var problem *strictjson.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &problem) && problem.Problem == strictjson.WrongType:
		return refuse("the claim " + problem.Error())
	default:
		return refuse("the claims are no object of strict JSON")
	}
}

// latestTime bounds exp: a larger number is no time in seconds.
const latestTime = 1 << 40

// seconds is a time as claims have it: seconds since 1970, with a fraction if need be.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// timeOf is the inverse of seconds.
func timeOf(seconds float64) time.Time { return time.UnixMicro(int64(seconds * 1e6)) }

// checkTimes applies the rules on iat and exp, seconds since 1970, with the skew forgiven.
func checkTimes(issued, expires *float64, now time.Time) error {
	switch {
	case issued == nil:
		return refuse("the claim iat is missing")
	case expires == nil:
		return refuse("the claim exp is missing")
	case *issued < 0 || *expires >= latestTime:
		return refuse("the claims iat and exp must be seconds since 1970")
	case *expires <= *issued:
		return refuse("it expires (exp) before it is issued (iat)")
	case *issued > seconds(now.Add(clockSkew)):
		return refuse("it is issued (iat) in the future: check the clock")
	case seconds(now.Add(-clockSkew)) >= *expires:
		return refuse("it has expired (exp)")
	}
	return nil
}
