package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/rouse-dev/rouse/internal/adminapi"
	"github.com/rouse-dev/rouse/internal/appapi"
	"github.com/rouse-dev/rouse/internal/config"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/refusal"
)

// remoteTime bounds a call of a core elsewhere.
const remoteTime = 30 * time.Second

// emitRemotely emits with an app key, as an SDK does.
func emitRemotely(ctx context.Context, address, secret string, e adminapi.Emit) (adminapi.Emitted, error) {
	var done adminapi.Emitted
	key, err := credential.ParseAppKey(secret)
	if err != nil {
		return done, fmt.Errorf("WAKESHIFT_KEY: %w", err)
	}
	base, err := coreAddress(address)
	if err != nil {
		return done, err
	}
	token, err := signAssertion(key, base, time.Now())
	if err != nil {
		return done, err
	}
	body, err := json.Marshal(e)
	if err != nil {
		return done, fmt.Errorf("writing the request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, remoteTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+appapi.Prefix+"/events/emit", bytes.NewReader(body))
	if err != nil {
		return done, fmt.Errorf("writing the request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	// A redirect would carry the assertion elsewhere.
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return done, fmt.Errorf("no answer from the core at %s (WAKESHIFT_CORE): %w", base, err)
	}
	defer response.Body.Close()
	return done, readAnswer(response, base, &done)
}

func readAnswer(response *http.Response, base string, done *adminapi.Emitted) error {
	content, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", base, err)
	}
	if response.StatusCode == http.StatusOK && json.Unmarshal(content, done) == nil {
		return nil
	}
	var refused struct {
		Error struct {
			Code    refusal.Code
			Message string
		}
	}
	if json.Unmarshal(content, &refused) != nil || refused.Error.Code == "" {
		return fmt.Errorf("%s answered %s, not as a core does: is WAKESHIFT_CORE its address?", base, response.Status)
	}
	return refusal.New(refused.Error.Code, "%s", refused.Error.Message)
}

// coreAddress is the base address of a core without a slash at its end; empty means the default one on this machine.
func coreAddress(address string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(cmp.Or(address, "http://"+config.DefaultListen)))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("WAKESHIFT_CORE: must be an http or https URL without user, query and fragment")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// assertionLife is how long an assertion lives: the longest the core takes.
const assertionLife = 2 * time.Minute

// signAssertion makes the proof that a request comes from the key's app; docs/wire.md §1.
func signAssertion(key credential.AppKey, core string, now time.Time) (string, error) {
	kid := credential.KeyID(key.PublicKey())
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: key.PrivateKey(), KeyID: kid}},
		new(jose.SignerOptions).WithType("app+jwt"))
	if err != nil {
		return "", fmt.Errorf("signing the request: %w", err)
	}
	who := cmp.Or(key.App(), kid)
	claims, err := json.Marshal(map[string]any{"iss": who, "sub": who, "aud": core + "/api/apps",
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix(), "jti": rand.Text()})
	if err != nil {
		return "", fmt.Errorf("signing the request: %w", err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", fmt.Errorf("signing the request: %w", err)
	}
	return signed.CompactSerialize()
}
