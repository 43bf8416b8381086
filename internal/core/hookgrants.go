package core

import (
	"context"
	"errors"
	"time"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// What a webhook subscription is granted.
const (
	hookTTL       = 24 * time.Hour
	minHookTTL    = 5 * time.Second
	maxHookTTL    = 7 * 24 * time.Hour
	rotationGrace = 24 * time.Hour
	maxHookReplay = 500
	secretPurpose = "webhook secret"
	formerPurpose = "former webhook secret"
)

func (c *Core) newWebhook(app wake.App, n Native, a access, q HookRequest) wake.Webhook {
	at := now()
	id := webhookID(app.ID, a.principal, q.URL, a.event.Name, string(a.arguments.Canonical))
	return wake.Webhook{ID: id, App: app.ID, Principal: a.principal, User: n.Call.User, URL: q.URL, Host: c.webhooks.Host(q.URL), Event: a.event.Name,
		Arguments: a.arguments.Canonical, Topic: a.arguments.Topic, Filter: a.arguments.Filter, Dialect: q.Dialect,
		CreatedAt: at, ExpiresAt: grantUntil(at, q.TTL), Secret: c.master.Seal(secretPurpose, id, []byte(q.Secret))}
}

// grantUntil is when a grant ends for which so much was asked; the zero time for one without end.
func grantUntil(at time.Time, ttl time.Duration) time.Time {
	switch {
	case ttl < 0:
		return time.Time{}
	case ttl == 0:
		ttl = hookTTL
	}
	return at.Add(min(max(ttl, minHookTTL), maxHookTTL))
}

// keepWebhook writes a verified subscription.
func (c *Core) keepWebhook(ctx context.Context, want wake.Webhook, a access, q HookRequest, m manifest) (HookGranted, error) {
	var granted HookGranted
	err := c.store.Update(ctx, func(tx store.Tx) error {
		granted = HookGranted{ID: want.ID, RefreshBefore: want.ExpiresAt}
		if err := m.current(tx, want.App); err != nil {
			return err
		}
		old, err := tx.Webhook(want.ID)
		switch {
		case err == nil && old.Live(want.CreatedAt):
			granted.Status, err = c.refresh(tx, old, want, q.Secret)
		case err == nil && old.EndedAt.IsZero(): // it expired and was not swept yet: what it was owed has expired with it
			if _, err = tx.DeleteWebhook(old.ID); err == nil {
				err = c.beginWebhook(tx, want, a, q, &granted)
			}
		case err == nil || errors.Is(err, store.ErrNotFound):
			err = c.beginWebhook(tx, want, a, q, &granted)
		}
		if err != nil {
			return err
		}
		through, err := tx.Watermark(want.ID)
		granted.Cursor = c.cursor(through)
		return err
	})
	return granted, err
}

// beginWebhook keeps a webhook that was not there, with what it is owed already.
func (c *Core) beginWebhook(tx store.Tx, w wake.Webhook, a access, q HookRequest, granted *HookGranted) error {
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
	from, claimed, err := c.replayFrom(tx, log, a, q, granted)
	if err != nil {
		return err
	}
	if err := queueReplay(tx, w, from, q.MaxAge, granted); err != nil || claimed.ID == "" {
		return err
	}
	// Only now: what is fleeting is erased when nobody is owed it.
	return tx.PutSubscription(claimed)
}

// refresh gives a live webhook a new grant: a new secret takes over, the old one signs beside it for a while, and one that was
// suspended goes on. It returns how its deliveries went.
func (c *Core) refresh(tx store.Tx, old, w wake.Webhook, secret string) (*HookStatus, error) {
	health, err := tx.Health(old.ID)
	if err != nil {
		return nil, err
	}
	status := &HookStatus{Active: !old.Suspended, LastDeliveryAt: health.LastDeliveryAt, LastError: health.LastError, FailedSince: health.FailedSince}
	if wait := health.ThrottledUntil.Sub(w.CreatedAt); wait > 0 {
		status.Throttled, status.RetryAfter = true, wait
	}
	if old.Suspended {
		health.WindowAt, health.Attempts, health.Failures, health.ThrottledUntil = time.Time{}, 0, 0, time.Time{}
		if err := tx.PutHealth(health); err != nil {
			return nil, err
		}
	}
	was, err := c.master.Unseal(secretPurpose, old.ID, old.Secret)
	if err == nil && string(was) != secret {
		w.Former, w.FormerUntil = c.master.Seal(formerPurpose, old.ID, was), w.CreatedAt.Add(rotationGrace)
	} else {
		w.Former, w.FormerUntil = old.Former, old.FormerUntil
	}
	if old.VerifiedAt.After(w.VerifiedAt) {
		w.VerifiedAt = old.VerifiedAt
	}
	w.From, w.CreatedAt = old.From, old.CreatedAt
	return status, tx.PutWebhook(w)
}

func (c *Core) limitHooks(tx store.Tx, w wake.Webhook) error {
	if c.limits.UserWebhooks == 0 {
		return nil
	}
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
	if mine >= c.limits.UserWebhooks {
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
