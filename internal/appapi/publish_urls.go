package appapi

import (
	"context"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

func makeEventURL(ctx context.Context, r *request) (any, error) {
	var body struct {
		Name      *string        `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
		To        string         `json:"to"`
	}
	if err := r.read(&body); err != nil {
		return nil, err
	}
	if body.Name == nil {
		return nil, missing("name")
	}
	made, url, err := r.core.EventPublishURL(ctx, r.caller.App, *body.Name, json.RawMessage(body.Arguments), body.To)
	return object{"id": made.ID, "event": made.Event, "url": url}, err
}

func makeTopicURL(ctx context.Context, r *request) (any, error) {
	var body struct {
		Topic *string `json:"topic"`
	}
	if err := r.read(&body); err != nil {
		return nil, err
	}
	if body.Topic == nil {
		return nil, missing("topic")
	}
	made, url, err := r.core.TopicPublishURL(ctx, r.caller.App, *body.Topic)
	return object{"id": made.ID, "topic": made.Topic, "url": url}, err
}

func revokeURL(ctx context.Context, r *request) (any, error) {
	return object{}, r.core.RevokePublishURL(ctx, r.caller.App, r.http.PathValue("id"))
}
