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
// keyOf gives the key of an id; its errors pass through, but for [ErrUnknownKey], which is a refusal.
func openJWS(token, typ string, keyOf func(kid string) (ed25519.PublicKey, error)) (payload []byte, kid string, err error) {
	if len(token) > maxTokenBytes {
		return nil, "", refuse(fmt.Sprintf("longer than %d bytes", maxTokenBytes))
	}
	head, err := readHeader(token, typ)
	if err != nil {
		return nil, "", err
	}
	key, err := keyOf(head.KeyID)
	if errors.Is(err, ErrUnknownKey) {
		return nil, "", refuse("signed with an unknown key")
	}
	if err != nil {
		return nil, "", err
	}
	// What the library says may repeat parts of the token, so none of it is passed on.
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return nil, "", refuse("not a compact JWS signed with EdDSA")
	}
	payload, err = signed.Verify(key)
	if err != nil {
		return nil, "", refuse("the signature does not match")
	}
	return payload, head.KeyID, nil
}

// readHeader checks that the token is three parts of strict base64url and that its header is one this package takes.
func readHeader(token, typ string) (header, error) {
	var head header
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return head, refuse("not a compact JWS: three parts with dots between them")
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(part)
		if err != nil || strings.ContainsAny(part, "\r\n") || part == "" {
			return head, refuse("not a compact JWS: each part must be base64url without padding")
		}
	}
	if err := strictjson.Decode(decoded[0], strictjson.Limits{}, &head); err != nil {
		return head, refuse("the header is no object of strict JSON with alg, typ and kid as strings")
	}
	switch {
	case head.Algorithm != string(jose.EdDSA):
		return head, refuse("the algorithm (alg) must be EdDSA")
	case head.Type != typ:
		return head, refuse("the type (typ) must be " + typ)
	case head.Critical != nil:
		return head, refuse("critical header members (crit) are not supported")
	case head.Base64 != nil:
		return head, refuse("the header member b64 is not supported")
	case len(decoded[2]) != ed25519.SignatureSize:
		return head, refuse(fmt.Sprintf("the signature must have %d bytes", ed25519.SignatureSize))
	}
	return head, nil
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
