package appapi

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/strictjson"
	"github.com/rouse-dev/rouse/internal/wake"
	"github.com/rouse-dev/rouse/internal/wakepath/native"
)

// object is an answer.
type object map[string]any

func missing(field string) error { return refusal.New(refusal.BadRequest, "%s: is missing", field) }

func app(_ context.Context, r *request) (any, error) {
	return object{"id": r.caller.App.ID, "name": r.caller.App.Name,
		"key": object{"key_id": r.caller.Key.ID, "name": r.caller.Key.Name}}, nil
}

func putManifest(ctx context.Context, r *request) (any, error) {
	body, err := strictjson.Object(r.body, strictjson.Limits{MaxBytes: wake.MaxManifest, MaxDepth: wake.MaxDepth})
	if err != nil {
		return nil, refusal.New(refusal.BadRequest, "%s", err)
	}
	if body, err = strictjson.Compact(body); err != nil {
		return nil, err
	}
	return r.core.PutManifest(ctx, r.caller.App, json.RawMessage(body))
}

// compact is a member's JSON in compact form; nil when it is absent or null.
func compact(v jsontext.Value) (json.RawMessage, error) {
	if len(v) == 0 || v.Kind() == jsontext.KindNull {
		return nil, nil
	}
	c, err := strictjson.Compact(v)
	return json.RawMessage(c), err
}

// aboutEvent is a call about one event.
type aboutEvent struct {
	Call      *wake.Call     `json:"call"`
	Name      *string        `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
	Once      bool           `json:"once"`
}

func (r *request) readAboutEvent() (aboutEvent, error) {
	var body aboutEvent
	if err := r.read(&body); err != nil {
		return body, err
	}
	if body.Call == nil {
		return body, missing("call")
	}
	if body.Name == nil {
		return body, missing("name")
	}
	return body, nil
}

func subscribeEvent(ctx context.Context, r *request) (any, error) {
	body, err := r.readAboutEvent()
	if err != nil {
		return nil, err
	}
	done, err := r.core.SubscribeEvent(ctx, r.caller.App, *body.Call, *body.Name, json.RawMessage(body.Arguments), body.Once)
	if err != nil {
		return nil, err
	}
	return r.subscribed(done, object{"event_subscription": object{"id": done.Subscription.ID, "created": done.Created}}), nil
}

// subscribed adds what every subscribing answer carries.
func (r *request) subscribed(done core.Subscribed, answer object) object {
	r.addition = done.Addition
	answer["session"] = done.Session
	answer["addition"] = addition(done.Addition)
	answer["agent"] = agent(done.Agent)
	return answer
}

func addition(a core.Addition) object {
	answer := object{}
	if a.Text != "" {
		answer["text"] = a.Text
	}
	if a.Meta != nil {
		answer["meta"] = a.Meta
	}
	return answer
}

func agent(a harness.Agent) object {
	answer := object{}
	for name, value := range map[string]string{"harness": a.Harness, "via": a.Via, "claimed": a.Claimed} {
		if value != "" {
			answer[name] = value
		}
	}
	return answer
}

func unsubscribeEvent(ctx context.Context, r *request) (any, error) {
	body, err := r.readAboutEvent()
	if err != nil {
		return nil, err
	}
	ended, err := r.core.UnsubscribeEvent(ctx, r.caller.App, *body.Call, *body.Name, json.RawMessage(body.Arguments))
	return object{"ended": ended}, err
}

func endSubscription(ctx context.Context, r *request) (any, error) {
	var body struct {
		User string  `json:"user"`
		ID   *string `json:"id"`
	}
	if err := r.read(&body); err != nil {
		return nil, err
	}
	if body.ID == nil {
		return nil, missing("id")
	}
	ended, err := r.core.EndUserSubscription(ctx, r.caller.App, body.User, *body.ID)
	return object{"ended": ended}, err
}

func listSubscriptions(ctx context.Context, r *request) (any, error) {
	var body struct {
		User string `json:"user"`
	}
	if err := r.read(&body); err != nil {
		return nil, err
	}
	subs, hooks, err := r.core.UserSubscriptions(ctx, r.caller.App, body.User)
	if err != nil {
		return nil, err
	}
	list := []object{}
	for _, s := range subs {
		list = append(list, object{"id": s.ID, "event": s.Event, "arguments": s.Arguments, "destination": "conversation",
			"created_at": timestamp(s.CreatedAt)})
	}
	for _, w := range hooks {
		item := object{"id": w.ID, "event": w.Event, "arguments": w.Arguments, "destination": "webhook", "created_at": timestamp(w.CreatedAt)}
		if u, err := url.Parse(w.URL); err == nil {
			item["webhook_host"] = u.Host
		}
		list = append(list, item)
	}
	return object{"subscriptions": list}, nil
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// aboutNative is a native request: as it came (params), or in the public SDK's flat form.
type aboutNative struct {
	aboutEvent
	Params   jsontext.Value `json:"params"`
	Refused  bool           `json:"refused"`
	Delivery *struct {
		Mode   *string `json:"mode"`
		URL    string  `json:"url"`
		Secret string  `json:"secret"`
	} `json:"delivery"`
	Dialect  string         `json:"dialect"`
	TTL      jsontext.Value `json:"ttl_ms"`
	Cursor   *string        `json:"cursor"`
	MaxAgeMs *int64         `json:"max_age_ms"`
}

func (r *request) readNative() (body aboutNative, err error) {
	if err = r.read(&body); err != nil {
		return body, err
	}
	if body.Call == nil {
		return body, missing("call")
	}
	return body, native.CheckDialect(body.Dialect)
}

func (b aboutNative) request() native.Request {
	return native.Request{Call: *b.Call, Params: json.RawMessage(b.Params), Refused: b.Refused, Dialect: b.Dialect}
}

func poll(ctx context.Context, r *request) (any, error) {
	body, err := r.readNative()
	if err != nil {
		return nil, err
	}
	if body.Params == nil {
		return nil, missing("params")
	}
	return native.Poll(ctx, r.core, r.caller.App, body.request())
}

// flat reads the public SDK's form of a native request about a webhook.
func (b aboutNative) flat() (core.Native, error) {
	switch {
	case b.Name == nil:
		return core.Native{}, missing("name")
	case b.Delivery == nil:
		return core.Native{}, missing("delivery")
	case b.Delivery.Mode != nil && *b.Delivery.Mode != "webhook":
		return core.Native{}, refusal.New(refusal.Unsupported, `delivery.mode: must be "webhook"`)
	}
	return core.Native{Call: *b.Call, Refused: b.Refused, Name: *b.Name, Arguments: json.RawMessage(b.Arguments)}, nil
}

func subscribeWebhook(ctx context.Context, r *request) (any, error) {
	body, err := r.readNative()
	if err != nil {
		return nil, err
	}
	if body.Params != nil {
		return native.Subscribe(ctx, r.core, r.caller.App, body.request())
	}
	ask, err := body.flat()
	if err != nil {
		return nil, err
	}
	q := core.HookRequest{URL: body.Delivery.URL, Secret: body.Delivery.Secret, Cursor: body.Cursor, Dialect: body.Dialect}
	if q.TTL, err = ttlMilliseconds(body.TTL); err != nil {
		return nil, err
	}
	if body.MaxAgeMs != nil {
		q.MaxAge = time.Duration(min(max(*body.MaxAgeMs, 0), maxMilliseconds)) * time.Millisecond
	}
	granted, err := r.core.SubscribeWebhook(ctx, r.caller.App, ask, q)
	if err != nil {
		return nil, err
	}
	answer := object{"id": granted.ID, "refresh_before": nil, "cursor": granted.Cursor, "truncated": granted.Truncated}
	if !granted.RefreshBefore.IsZero() {
		answer["refresh_before"] = timestamp(granted.RefreshBefore)
	}
	if granted.Status != nil {
		answer["delivery_status"] = native.StatusOnWire(*granted.Status)
	}
	return answer, nil
}

const maxMilliseconds = int64(365 * 24 * time.Hour / time.Millisecond)

// ttlMilliseconds tells an absent ttl_ms (0) from null (negative: without end).
func ttlMilliseconds(v jsontext.Value) (time.Duration, error) {
	if len(v) == 0 {
		return 0, nil
	}
	if v.Kind() == jsontext.KindNull {
		return -1, nil
	}
	var ms int64
	if json.Unmarshal(v, &ms) != nil || ms < 0 {
		return 0, refusal.New(refusal.BadRequest, "ttl_ms: must be a whole number of milliseconds, or null")
	}
	return time.Duration(min(max(ms, 1), maxMilliseconds)) * time.Millisecond, nil
}

func unsubscribeWebhook(ctx context.Context, r *request) (any, error) {
	body, err := r.readNative()
	if err != nil {
		return nil, err
	}
	if body.Params != nil {
		return native.Unsubscribe(ctx, r.core, r.caller.App, body.request())
	}
	ask, err := body.flat()
	if err != nil {
		return nil, err
	}
	ended, err := r.core.UnsubscribeWebhook(ctx, r.caller.App, ask, body.Delivery.URL)
	return object{"ended": ended}, err
}
