package native

import (
	"context"
	"time"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Subscribe answers events/subscribe.
func Subscribe(ctx context.Context, c *core.Core, app wake.App, q Request) (Answer, error) {
	p, err := read(q.Params)
	if err != nil {
		return q.answer(nil, err)
	}
	mode, err := p.mode()
	if err != nil {
		return q.answer(nil, err)
	}
	if mode != "webhook" {
		return q.unsupported(mode), nil
	}
	url, err := text("delivery.url", p.delivery["url"])
	if err != nil {
		return q.answer(nil, err)
	}
	secret, err := text("delivery.secret", p.delivery["secret"])
	if err != nil {
		return q.answer(nil, err)
	}
	granted, err := c.SubscribeWebhook(ctx, app, q.of(p), core.HookRequest{URL: url, Secret: secret, TTL: p.ttl, Cursor: p.cursor, MaxAge: p.maxAge,
		Dialect: q.dialect().Name})
	return q.answer(grantOnWire(granted), err)
}

// mode is how to deliver: by webhook when nothing is said.
func (p params) mode() (string, error) {
	if absent(p.delivery["mode"]) {
		return "webhook", nil
	}
	return text("delivery.mode", p.delivery["mode"])
}

func (q Request) unsupported(mode string) Answer {
	data := map[string]any{"feature": "deliveryMode"}
	if len(mode) <= 64 {
		data["value"] = mode
	}
	return Answer{Error: &Error{Code: q.dialect().Unsupported, Message: `delivery.mode: must be "webhook"`, Data: data}}
}

// grantOnWire is a grant as MCP Events writes it.
func grantOnWire(g core.HookGranted) map[string]any {
	result := map[string]any{"id": g.ID, "refreshBefore": nil, "cursor": g.Cursor, "truncated": g.Truncated}
	if !g.RefreshBefore.IsZero() {
		result["refreshBefore"] = g.RefreshBefore.UTC().Format(time.RFC3339)
	}
	if g.Status != nil {
		result["deliveryStatus"] = StatusOnWire(*g.Status)
	}
	return result
}

// StatusOnWire is a delivery status as MCP Events writes it.
func StatusOnWire(s core.HookStatus) map[string]any {
	status := map[string]any{"active": s.Active, "lastError": nil}
	if !s.LastDeliveryAt.IsZero() {
		status["lastDeliveryAt"] = s.LastDeliveryAt.UTC().Format(time.RFC3339)
	}
	if s.LastError != "" {
		status["lastError"] = s.LastError
	}
	if !s.FailedSince.IsZero() {
		status["failedSince"] = s.FailedSince.UTC().Format(time.RFC3339)
	}
	if s.Throttled {
		status["throttled"], status["retryAfterMs"] = true, s.RetryAfter.Milliseconds()
	}
	return status
}

// Unsubscribe answers events/unsubscribe.
func Unsubscribe(ctx context.Context, c *core.Core, app wake.App, q Request) (Answer, error) {
	p, err := read(q.Params)
	if err != nil {
		return q.answer(nil, err)
	}
	url, err := text("delivery.url", p.delivery["url"])
	if err != nil {
		return q.answer(nil, err)
	}
	ended, err := c.UnsubscribeWebhook(ctx, app, q.of(p), url)
	if err == nil && !ended && !q.dialect().Forgiving {
		err = refusal.New(refusal.UnknownSubscription, "there is no subscription with that event, arguments and delivery.url")
	}
	return q.answer(map[string]any{}, err)
}
