package core

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Webhooks reaches the endpoints of native subscribers. Package wakepath/webhook implements it.
type Webhooks interface {
	// CheckTarget refuses an address or secret that could never be one, without calling it.
	CheckTarget(url, secret string) error
	// Host is the host and port of an address that CheckTarget let pass, in one form however it is spelled.
	Host(url string) string
	// Trusts reports whether the operator said that the endpoint there wants deliveries.
	Trusts(url string) bool
	// Verify asks the endpoint whether it wants deliveries. The reason of a failure is one of the words of the MCP Events draft.
	Verify(ctx context.Context, target HookTarget) (reason string, ok bool)
	// Deliver makes one attempt.
	Deliver(ctx context.Context, target HookTarget, id string, body []byte) HookResult
}

// A HookTarget is an endpoint and what signs for it.
type HookTarget struct {
	URL          string
	Secrets      []string // the first is the current one
	Subscription string
}

// A HookResult is how one attempt went.
type HookResult struct {
	Delivered  bool
	Retry      bool          // trying again may help
	RetryAfter time.Duration // what the endpoint asked for; 0 when it did not
	Status     int           // of its answer; 0 when there was none
	Reason     string        // of a failure
}

// A HookRequest is what an events/subscribe asks beside its event.
type HookRequest struct {
	URL, Secret string
	TTL         time.Duration // 0: the default; negative: without end
	Cursor      *string       // nil: from now on
	MaxAge      time.Duration
	Dialect     string // empty: that of the call
}

// A HookGranted is the answer to events/subscribe.
type HookGranted struct {
	ID            string
	RefreshBefore time.Time // zero: never
	// Cursor is a place up to which nothing is owed any more; the client may keep it.
	Cursor    string
	Truncated bool
	Status    *HookStatus // nil for a new subscription
}

// A HookStatus is how deliveries went before a refresh.
type HookStatus struct {
	Active         bool // false: it was suspended, and this refresh has revived it
	LastDeliveryAt time.Time
	LastError      string
	FailedSince    time.Time
	Throttled      bool          // the endpoint asked for time
	RetryAfter     time.Duration // until it takes more, while throttled
}

// SubscribeWebhook makes or refreshes a native subscription. The endpoint is verified before anything is kept; what a voucher's
// conversation was owed and has not received is delivered to it. A subscription that its owner may not have any more ends with the
// refusal.
func (c *Core) SubscribeWebhook(ctx context.Context, app wake.App, n Native, q HookRequest) (HookGranted, error) {
	if err := c.checkCall(app, n.Call); err != nil {
		return HookGranted{}, err
	}
	if c.webhooks == nil {
		return HookGranted{}, refusal.New(refusal.Unsupported, "delivery.mode: this core delivers no webhooks")
	}
	if q.Dialect == "" {
		q.Dialect = DialectOf(n.Call).Name
	}
	var granted HookGranted
	err := c.withManifest(ctx, app.ID, func(m manifest) error {
		a, err := c.admit(ctx, app, m, n)
		if err != nil {
			return c.endRefused(ctx, app, m, a, q.URL, err)
		}
		if err := a.offers(wake.DeliveryWebhook); err != nil {
			return err
		}
		if a.principal == "" {
			return refusal.New(refusal.Forbidden, "a subscription belongs to somebody: sign in to the app first")
		}
		if err := c.webhooks.CheckTarget(q.URL, q.Secret); err != nil {
			return err
		}
		want := c.newWebhook(app, n, a, q)
		if want.VerifiedAt, err = c.verify(ctx, want, q.Secret); err != nil {
			return err
		}
		granted, err = c.keepWebhook(ctx, want, a, q, m)
		return err
	})
	if err == nil {
		c.hintDeliveries()
		c.feed.Put(trace.Entry{Kind: trace.Subscribed, App: app.ID, Event: n.Name, Subscription: granted.ID, Path: "webhook"})
	}
	return granted, err
}

// webhookID is the same for the same principal, address, event and arguments.
func webhookID(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		var length [8]byte
		for i := range length {
			length[i] = byte(len(part) >> (8 * i))
		}
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return "sub_" + strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)[:20]))
}

// UnsubscribeWebhook ends a native subscription, without a word to its endpoint. It reports whether there was one.
func (c *Core) UnsubscribeWebhook(ctx context.Context, app wake.App, n Native, url string) (bool, error) {
	if err := c.checkCall(app, n.Call); err != nil {
		return false, err
	}
	var ended bool
	err := c.withManifest(ctx, app.ID, func(m manifest) error {
		event, err := m.event(n.Name)
		if err != nil {
			return err
		}
		arguments, voucher, err := splitVoucher(n.Arguments)
		if err != nil {
			return err
		}
		bound, err := event.Bind(arguments)
		if err != nil {
			return err
		}
		principal := ""
		if id, ok := c.master.OpenVoucher(voucher); ok {
			principal = wake.VoucherPrincipal("sub_" + id)
		}
		if n.Call.User != "" {
			principal = wake.UserPrincipal(n.Call.User)
		}
		if principal == "" {
			return refusal.New(refusal.Forbidden, "a subscription belongs to somebody: sign in to the app first")
		}
		id := webhookID(app.ID, principal, url, event.Name, string(bound.Canonical))
		return c.store.Update(ctx, func(tx store.Tx) error {
			ended = false
			w, err := tx.Webhook(id)
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			ended = w.Live(now())
			_, err = tx.DeleteWebhook(id)
			return err
		})
	})
	return ended, err
}
