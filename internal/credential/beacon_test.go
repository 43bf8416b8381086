package credential_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/credential"
)

var beacon = credential.Beacon{
	Redeem: "https://core.example/connect/redeem?a=1&b=2", Ticket: "wtk_x", Tool: "start_crawl", Issuer: "https://core.example",
	Issued: now, Expires: now.Add(10 * time.Minute),
}

func TestBeacon(t *testing.T) {
	t.Parallel()
	token, err := master.SignBeacon(beacon)
	if err != nil {
		t.Fatal(err)
	}
	for offset, good := range map[time.Duration]bool{
		-31 * time.Second: false, -30 * time.Second: true, 0: true, 10*time.Minute + 29*time.Second: true, 10*time.Minute + 30*time.Second: false,
	} {
		got, err := credential.VerifyBeacon(token, master.BeaconKey(), now.Add(offset))
		if diff := cmp.Diff(beacon, got); good && (err != nil || diff != "") {
			t.Errorf("after %v: %v %s", offset, err, diff)
		}
		if !good && !errors.Is(err, credential.ErrRefused) {
			t.Errorf("after %v: got %v, want a refusal", offset, err)
		}
	}
}

// TestBeaconOnTheWire reads a beacon as a connector of another make would.
func TestBeaconOnTheWire(t *testing.T) {
	t.Parallel()
	token, err := master.SignBeacon(beacon)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%d parts", len(parts))
	}
	var decoded [2]map[string]any
	for i := range decoded {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &decoded[i]); err != nil {
			t.Fatal(err)
		}
	}
	want := [2]map[string]any{
		{"alg": "EdDSA", "kid": credential.KeyID(master.BeaconKey()), "typ": "beacon+jwt"},
		{"redeem": beacon.Redeem, "ticket": "wtk_x", "tool": "start_crawl", "iss": "https://core.example",
			"iat": float64(now.Unix()), "exp": float64(now.Unix() + 600)},
	}
	if diff := cmp.Diff(want, decoded); diff != "" {
		t.Error(diff)
	}
	if got := credential.KeyID(master.BeaconKey()); got != "cI7R2P9OxJv6PCtIfBuy3g" {
		t.Errorf("the key that beacons are signed with changed: %s", got)
	}
}

func TestVerifyBeaconRefuses(t *testing.T) {
	t.Parallel()
	token, err := master.SignBeacon(beacon)
	if err != nil {
		t.Fatal(err)
	}
	head := members{"alg": "EdDSA", "typ": "beacon+jwt", "kid": kid}
	claims := members{"redeem": "https://core.example", "ticket": "t", "tool": "x", "iss": "i", "iat": now.Unix(), "exp": now.Unix() + 600}
	public := appKey.Public().(ed25519.PublicKey)
	for name, c := range map[string]struct {
		token string
		key   ed25519.PublicKey
		want  string
	}{
		"another key":     {token, public, "refused: signed with an unknown key"},
		"an assertion":    {sign(t, appKey, goodHeader(), goodClaims()), public, "refused: the type (typ) must be beacon+jwt"},
		"another signer":  {sign(t, stranger, head, claims), public, "refused: the signature does not match"},
		"no redeem":       {sign(t, appKey, head, claims.with(members{"redeem": nil})), public, "refused: the claims redeem, ticket and iss may not be empty"},
		"no ticket":       {sign(t, appKey, head, claims.with(members{"ticket": nil})), public, "refused: the claims redeem, ticket and iss may not be empty"},
		"no issuer":       {sign(t, appKey, head, claims.with(members{"iss": ""})), public, "refused: the claims redeem, ticket and iss may not be empty"},
		"ticket a number": {sign(t, appKey, head, claims.with(members{"ticket": 1})), public, "refused: the claim ticket: must be a string"},
		"no exp":          {sign(t, appKey, head, claims.with(members{"exp": nil})), public, "refused: the claim exp is missing"},
		"for ever":        {sign(t, appKey, head, claims.with(members{"exp": 1e30})), public, "refused: the claims iat and exp must be seconds since 1970"},
	} {
		_, err := credential.VerifyBeacon(c.token, c.key, now)
		if !errors.Is(err, credential.ErrRefused) {
			t.Errorf("%s: got %v, want a refusal", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, err.Error()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := credential.VerifyBeacon(sign(t, appKey, head, claims), public, now); err != nil {
		t.Errorf("the claims the refusals start from: %v", err)
	}
}
