package core

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/quota"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// How endpoints are verified.
const (
	verificationTTL   = 24 * time.Hour
	maxVerifications  = 10_000 // that are remembered
	verifyAtOnce      = 256
	hostVerifications = 120 // a minute, of one host, and at once
)

// verifications remembers which endpoints have passed, for each principal apart: one's check never serves another.
type verifications struct {
	mu     sync.Mutex
	passed map[endpoint]time.Time // when they did
	hosts  *quota.Quota[string]
	room   chan struct{}
}

// An endpoint is a principal's URL.
type endpoint struct{ app, principal, url string }

func newVerifications() *verifications {
	return &verifications{passed: map[endpoint]time.Time{}, room: make(chan struct{}, verifyAtOnce),
		hosts: quota.New[string](hostVerifications, time.Minute, hostVerifications)}
}

// verify sees to it that a webhook's endpoint wants deliveries, and returns when it last said so; the zero time when the operator
// did. An endpoint that said so a while ago, to this node or another, is not asked again.
func (c *Core) verify(ctx context.Context, w wake.Webhook, secret string) (time.Time, error) {
	if c.webhooks.Trusts(w.URL) {
		return time.Time{}, nil
	}
	v, key := c.verified, endpoint{w.App, w.Principal, w.URL}
	at := v.when(key)
	if time.Since(at) < verificationTTL {
		return at, nil
	}
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		at, err = r.VerifiedAt(key.app, key.principal, key.url)
		return err
	})
	if err != nil || time.Since(at) < verificationTTL {
		return at, err
	}
	if wait, ok := v.hosts.Take(w.Host, 1, time.Now()); !ok {
		return at, tooManyVerifications(wait, "delivery.url: its host was asked to verify endpoints %d times within a minute, the most allowed", hostVerifications)
	}
	select {
	case v.room <- struct{}{}:
		defer func() { <-v.room }()
	default:
		return at, tooManyVerifications(time.Second, "delivery.url: %d endpoints are being verified, the most at once", verifyAtOnce)
	}
	reason, ok := c.webhooks.Verify(ctx, HookTarget{URL: w.URL, Secrets: []string{secret}, Subscription: w.ID})
	if !ok {
		return at, refusal.New(refusal.CallbackFailed, "delivery.url: the endpoint did not pass its verification (%s)", reason).WithReason(reason)
	}
	at = now()
	v.pass(key, at)
	c.hosts.proved(w.Host, at)
	return at, nil
}

// limitVerifications is the reason of a refusal for the sake of the hosts that are asked.
const limitVerifications = "verifications"

func tooManyVerifications(wait time.Duration, format string, args ...any) error {
	no := refusal.New(refusal.RateLimited, format, args...)
	no.RetryAfter, no.Reason = wait, limitVerifications
	return no
}

func (v *verifications) when(key endpoint) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.passed[key]
}

func (v *verifications) pass(key endpoint, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.passed) >= maxVerifications {
		clear(v.passed) // the store knows them too
	}
	v.passed[key] = at
}

// forget drops what a principal's endpoints have passed.
func (v *verifications) forget(app, principal string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.passed, func(key endpoint, _ time.Time) bool { return key.app == app && key.principal == principal })
}
