package core

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
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
	// Verify asks the endpoint to echo a challenge. The reason of a failure is one of the words of the MCP Events draft.
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
	Reason     string        // of a failure
}

// What a webhook subscription is granted.
const (
	hookTTL          = 24 * time.Hour
	minHookTTL       = time.Minute
	maxHookTTL       = 7 * 24 * time.Hour
	rotationGrace    = 24 * time.Hour
	verificationTTL  = 24 * time.Hour
	maxHookReplay    = 500
	secretPurpose    = "webhook secret"
	formerPurpose    = "former webhook secret"
	maxVerifications = 10_000
)

// A HookRequest is what an events/subscribe asks beside its event.
type HookRequest struct {
	URL, Secret string
	TTL         time.Duration // 0: the default; negative: as long as possible
	Cursor      *string       // nil: from now on
	MaxAge      time.Duration
	Dialect     string // empty: that of the call
}

// A HookGranted is the answer to events/subscribe.
type HookGranted struct {
	ID            string
	RefreshBefore time.Time
	Truncated     bool
	Status        *HookStatus // nil for a new subscription
}

// A HookStatus is how deliveries went before a refresh.
type HookStatus struct {
	Active         bool
	LastDeliveryAt time.Time
	LastError      string
	FailedSince    time.Time
}

// SubscribeWebhook makes or refreshes a native subscription. The endpoint is verified before anything is kept; what a voucher's
// conversation was owed and has not received is delivered to it.
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
			return err
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
		if err := c.verify(ctx, a.principal, want.ID, q); err != nil {
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

func (c *Core) newWebhook(app wake.App, n Native, a access, q HookRequest) wake.Webhook {
	at := now()
	ttl := q.TTL
	switch {
	case ttl == 0:
		ttl = hookTTL
	case ttl < 0 || ttl > maxHookTTL:
		ttl = maxHookTTL
	case ttl < minHookTTL:
		ttl = minHookTTL
	}
	id := webhookID(app.ID, a.principal, q.URL, a.event.Name, string(a.arguments.Canonical))
	return wake.Webhook{ID: id, App: app.ID, Principal: a.principal, User: n.Call.User, URL: q.URL, Event: a.event.Name,
		Arguments: a.arguments.Canonical, Topic: a.arguments.Topic, Filter: a.arguments.Filter, Dialect: q.Dialect,
		CreatedAt: at, ExpiresAt: at.Add(ttl), Secret: c.master.Seal(secretPurpose, id, []byte(q.Secret))}
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

// keepWebhook writes a verified subscription.
func (c *Core) keepWebhook(ctx context.Context, want wake.Webhook, a access, q HookRequest, m manifest) (HookGranted, error) {
	var granted HookGranted
	err := c.store.Update(ctx, func(tx store.Tx) error {
		w := want
		granted = HookGranted{ID: w.ID, RefreshBefore: w.ExpiresAt}
		if err := m.current(tx, w.App); err != nil {
			return err
		}
		old, err := tx.Webhook(w.ID)
		if err == nil && old.Live(w.CreatedAt) {
			h, err := tx.Health(old.ID)
			if err != nil {
				return err
			}
			granted.Status = &HookStatus{!old.Suspended, h.LastDeliveryAt, h.LastError, h.FailedSince}
			h.LastError, h.FailedSince = "", time.Time{}
			if err := tx.PutHealth(h); err != nil {
				return err
			}
			return tx.PutWebhook(c.refresh(old, w, q.Secret))
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := c.limitHooks(tx, w); err != nil {
			return err
		}
		log, err := tx.Log()
		if err != nil {
			return err
		}
		w.From = log.Head
		if err := tx.PutWebhook(w); err != nil {
			return err
		}
		from, claimed, err := c.replayFrom(tx, log, a, q, &granted)
		if err != nil {
			return err
		}
		if err := queueReplay(tx, w, from, q.MaxAge, &granted); err != nil || claimed.ID == "" {
			return err
		}
		// Only now: what is fleeting is erased when nobody is owed it.
		return tx.PutSubscription(claimed)
	})
	return granted, err
}

// refresh is a live webhook with a new grant: a new secret takes over, and the old one signs beside it for a while.
func (c *Core) refresh(old, w wake.Webhook, secret string) wake.Webhook {
	was, err := c.master.Unseal(secretPurpose, old.ID, old.Secret)
	if err == nil && string(was) != secret {
		w.Former, w.FormerUntil = c.master.Seal(formerPurpose, old.ID, was), w.CreatedAt.Add(rotationGrace)
	} else {
		w.Former, w.FormerUntil = old.Former, old.FormerUntil
	}
	w.From, w.CreatedAt = old.From, old.CreatedAt
	return w
}

func (c *Core) limitHooks(tx store.Tx, w wake.Webhook) error {
	all, err := tx.WebhooksOfUser(w.App, w.User)
	if err != nil {
		return err
	}
	mine := 0
	for _, other := range all {
		if other.Principal == w.Principal && other.Live(w.CreatedAt) {
			mine++
		}
	}
	if c.limits.UserWebhooks > 0 && mine >= c.limits.UserWebhooks {
		return refusal.New(refusal.SubscriptionLimit, "%d webhook subscriptions, the most one user may have", mine).With("max", c.limits.UserWebhooks)
	}
	return nil
}

// replayFrom is where a new webhook's deliveries begin: at its cursor, at what its voucher's conversation has not received, or
// at the log's end. claimed is that conversation's subscription as it is to be kept once the webhook has taken its place, the
// zero one when there is none to claim.
func (c *Core) replayFrom(tx store.Tx, log store.Log, a access, q HookRequest, granted *HookGranted) (from wake.Seq, claimed wake.Subscription, err error) {
	from = log.Head
	if a.voucher != "" {
		s, err := tx.Subscription(a.voucher)
		if err != nil {
			return 0, claimed, err
		}
		conversation, err := tx.Conversation(s.Conversation)
		if err != nil {
			return 0, claimed, err
		}
		if !s.Claimed {
			from, claimed = max(s.From, conversation.Position), s
			claimed.Claimed = true
		}
	}
	if q.Cursor == nil {
		return from, claimed, nil
	}
	after, ok := c.parseCursor(*q.Cursor)
	if !ok || after > log.Head {
		granted.Truncated = true
		return from, claimed, nil
	}
	if after < log.Horizon {
		after, granted.Truncated = log.Horizon, true
	}
	return min(from, after), claimed, nil
}

// queueReplay queues what a new webhook is owed already, at most [maxHookReplay].
func queueReplay(tx store.Tx, w wake.Webhook, from wake.Seq, maxAge time.Duration, granted *HookGranted) error {
	if from >= w.From {
		return nil
	}
	past := w
	past.From = from
	page, err := readOn(tx, w.App, w.Topic, stretch{from, w.From}, maxHookReplay, past.Takes)
	if err != nil {
		return err
	}
	granted.Truncated = granted.Truncated || page.more
	for _, o := range page.occurrences {
		if maxAge > 0 && o.At.Before(w.CreatedAt.Add(-maxAge)) {
			granted.Truncated = true
			continue
		}
		if err := tx.QueueDelivery(wake.Delivery{Webhook: w.ID, Seq: o.Seq, NextAt: w.CreatedAt}); err != nil {
			return err
		}
	}
	return nil
}

// UnsubscribeWebhook ends a native subscription. It reports whether there was one.
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
		return c.store.Update(ctx, func(tx store.Tx) error {
			ended, err = tx.DeleteWebhook(webhookID(app.ID, principal, url, event.Name, string(bound.Canonical)))
			return err
		})
	})
	return ended, err
}

// verifications remembers which endpoints have passed, for each principal apart: one's check never serves another.
type verifications struct {
	mu     sync.Mutex
	passed map[[2]string]time.Time
}

func (c *Core) verify(ctx context.Context, principal, subscription string, q HookRequest) error {
	v, key := &c.verified, [2]string{principal, q.URL}
	v.mu.Lock()
	until, ok := v.passed[key]
	v.mu.Unlock()
	if ok && time.Now().Before(until) {
		return nil
	}
	reason, ok := c.webhooks.Verify(ctx, HookTarget{URL: q.URL, Secrets: []string{q.Secret}, Subscription: subscription})
	if !ok {
		return refusal.New(refusal.CallbackFailed, "delivery.url: the endpoint did not pass its verification (%s)", reason).WithReason(reason)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.passed == nil || len(v.passed) >= maxVerifications {
		v.passed = map[[2]string]time.Time{}
	}
	v.passed[key] = time.Now().Add(verificationTTL)
	return nil
}

// forget drops what a principal's endpoints have passed.
func (v *verifications) forget(principal string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.passed, func(key [2]string, _ time.Time) bool { return key[0] == principal })
}

// deliveryBody is what an endpoint is sent of an occurrence.
func (c *Core) deliveryBody(o wake.Occurrence) ([]byte, error) { return json.Marshal(c.onWire(o)) }
