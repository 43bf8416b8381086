package credential

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const beaconType = "beacon+jwt"

// A Beacon tells a connector where to redeem which ticket. It travels in the result of a tool call through programs nobody
// vouches for, so it is signed: a compact JWS, EdDSA.
type Beacon struct {
	Redeem  string    // URL to redeem at
	Ticket  string    // see [Ticket]
	Tool    string    // the tool whose result it may come in
	Issuer  string    // the core's public URL
	Issued  time.Time // in whole seconds
	Expires time.Time // in whole seconds
}

// beaconClaims is a beacon on the wire.
type beaconClaims struct {
	Redeem  string   `json:"redeem"`
	Ticket  string   `json:"ticket"`
	Tool    string   `json:"tool"`
	Issuer  string   `json:"iss"`
	Issued  *float64 `json:"iat"`
	Expires *float64 `json:"exp"`
}

// BeaconKey is the public key that the beacons of this master are signed with; their kid is its [KeyID].
func (m *Master) BeaconKey() ed25519.PublicKey { return m.beacon.Public().(ed25519.PublicKey) }

// SignBeacon signs a beacon, its times rounded down to the second. Safe for concurrent use.
func (m *Master) SignBeacon(beacon Beacon) (string, error) {
	issued, expires := float64(beacon.Issued.Unix()), float64(beacon.Expires.Unix())
	claims, err := json.Marshal(beaconClaims{
		Redeem: beacon.Redeem, Ticket: beacon.Ticket, Tool: beacon.Tool, Issuer: beacon.Issuer, Issued: &issued, Expires: &expires,
	})
	if err != nil {
		return "", fmt.Errorf("writing a beacon: %w", err)
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: m.beacon, KeyID: KeyID(m.BeaconKey())}},
		new(jose.SignerOptions).WithType(beaconType))
	if err != nil {
		return "", fmt.Errorf("signing a beacon: %w", err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", fmt.Errorf("signing a beacon: %w", err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		return "", fmt.Errorf("writing a beacon: %w", err)
	}
	return token, nil
}

// VerifyBeacon checks that a beacon was signed with the given key and is good now, and reads it. Whether its issuer, the
// origin it redeems at and the tool are the right ones is for the caller to decide. The error wraps [ErrRefused]. Safe for
// concurrent use.
func VerifyBeacon(token string, public ed25519.PublicKey, now time.Time) (Beacon, error) {
	payload, _, err := openJWS(token, beaconType, nil, func(kid string) (ed25519.PublicKey, error) {
		if kid != KeyID(public) {
			return nil, ErrUnknownKey
		}
		return public, nil
	})
	if err != nil {
		return Beacon{}, err
	}
	var claims beaconClaims
	if err := readClaims(payload, &claims); err != nil {
		return Beacon{}, err
	}
	if err := checkTimes(claims.Issued, claims.Expires, now); err != nil {
		return Beacon{}, err
	}
	if claims.Redeem == "" || claims.Ticket == "" || claims.Issuer == "" {
		return Beacon{}, refuse("the claims redeem, ticket and iss may not be empty")
	}
	return Beacon{
		Redeem: claims.Redeem, Ticket: claims.Ticket, Tool: claims.Tool, Issuer: claims.Issuer,
		Issued: timeOf(*claims.Issued), Expires: timeOf(*claims.Expires),
	}, nil
}
