package appapi

import (
	"context"

	"github.com/rouse-dev/rouse/internal/core"
)

func subscriptionStatus(ctx context.Context, r *request) (any, error) {
	status, err := r.core.Subscription(ctx, r.caller.App, r.http.PathValue("id"))
	if err != nil {
		return nil, err
	}
	answer := object{"id": status.ID, "topic": status.Topic, "status": status.Status, "connected": status.Via != "",
		"expires_at": timestamp(status.ExpiresAt)}
	if status.Via != "" {
		answer["via"] = status.Via
	}
	return answer, nil
}

func sendToSubscription(ctx context.Context, r *request) (any, error) {
	var body struct {
		Event *aMessage `json:"event"`
	}
	if err := r.readAround(2, &body); err != nil {
		return nil, err
	}
	if body.Event == nil {
		return nil, missing("event")
	}
	data, err := body.Event.object()
	if err != nil {
		return nil, err
	}
	status, err := r.core.Send(ctx, r.caller.App, r.http.PathValue("id"), core.Send{Text: body.Event.Text, Data: data, ID: body.Event.ID})
	return object{"status": status}, err
}

func endByID(ctx context.Context, r *request) (any, error) {
	var body struct{}
	if err := r.read(&body); err != nil {
		return nil, err
	}
	ended, err := r.core.EndSubscription(ctx, r.caller.App, r.http.PathValue("id"))
	return object{"ended": ended}, err
}
