package webhook

import (
	"context"
	"errors"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
)

// Endpoints is a [Sender] as the core knows it. Safe for concurrent use.
type Endpoints struct{ Sender *Sender }

var _ core.Webhooks = Endpoints{}

// CheckTarget refuses a URL or a secret that could never be one, with refusal.BadRequest.
func (e Endpoints) CheckTarget(url, secret string) error {
	if err := e.Sender.CheckURL(url); err != nil {
		return refusal.New(refusal.BadRequest, "delivery.url: %v", err)
	}
	if _, err := ParseSecret(secret); err != nil {
		return refusal.New(refusal.BadRequest, "delivery.secret: %v", err)
	}
	return nil
}

// Host is [Host].
func (e Endpoints) Host(url string) string { return Host(url) }

// Trusts is [Sender.Trusts].
func (e Endpoints) Trusts(url string) bool { return e.Sender.Trusts(url) }

// Verify is [Sender.Verify].
func (e Endpoints) Verify(ctx context.Context, to core.HookTarget) (reason string, ok bool) {
	target, err := targetOf(to)
	if err != nil {
		return string(ConnectionRefused), false
	}
	err = e.Sender.Verify(ctx, target)
	if failed, ok := errors.AsType[*VerifyError](err); ok {
		return string(failed.Reason), false
	}
	return "", err == nil
}

// Deliver is [Sender.Deliver].
func (e Endpoints) Deliver(ctx context.Context, to core.HookTarget, id string, body []byte) core.HookResult {
	target, err := targetOf(to)
	if err != nil {
		return core.HookResult{Reason: string(ConnectionRefused)}
	}
	result := e.Sender.Deliver(ctx, target, Message{ID: id, Body: body})
	return core.HookResult{Delivered: result.Reason == "", Retry: result.Retry, RetryAfter: result.RetryAfter, Status: result.Status,
		Reason: string(result.Reason)}
}

// targetOf reads the secrets, which were checked when the core took them.
func targetOf(to core.HookTarget) (Target, error) {
	target := Target{URL: to.URL, SubscriptionID: to.Subscription}
	for _, text := range to.Secrets {
		secret, err := ParseSecret(text)
		if err != nil {
			return Target{}, err
		}
		target.Secrets = append(target.Secrets, secret)
	}
	return target, nil
}
