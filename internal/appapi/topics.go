package appapi

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/strictjson"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A span is a length of time on the wire: a number of seconds, or a text such as "5m".
type span time.Duration

// longestSpan bounds what a number of seconds is taken for, so that it cannot overflow.
const longestSpan = 100 * 365 * 24 * time.Hour

var spanUnits = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}

// UnmarshalJSON reads a span.
func (s *span) UnmarshalJSON(raw []byte) error {
	digits, unit := string(raw), time.Second
	if text, err := strconv.Unquote(digits); err == nil && text != "" {
		if unit = spanUnits[text[len(text)-1]]; unit == 0 {
			return strictjson.Mismatch(spanForm)
		}
		digits = text[:len(text)-1]
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // one out of range is the largest, which is too long for anything
		return strictjson.Mismatch(spanForm)
	}
	*s = span(min(float64(n)*float64(unit), float64(longestSpan)))
	return nil
}

const spanForm = `a whole number of seconds, or a text such as "90s", "5m", "12h" or "7d"`

func subscribeTopic(ctx context.Context, r *request) (any, error) {
	var body struct {
		Call   *wake.Call     `json:"call"`
		Topic  *string        `json:"topic"`
		Once   bool           `json:"once"`
		Filter jsontext.Value `json:"filter"`
		TTL    *span          `json:"ttl"`
		Replay *span          `json:"replay"`
	}
	if err := r.read(&body); err != nil {
		return nil, err
	}
	switch {
	case body.Call == nil:
		return nil, missing("call")
	case body.Topic == nil:
		return nil, missing("topic")
	}
	filter, err := wake.ParseFilter(json.RawMessage(body.Filter))
	if err != nil {
		return nil, err
	}
	o := core.TopicOptions{Filter: filter, Once: body.Once}
	if body.Replay != nil {
		o.Replay = time.Duration(*body.Replay)
	}
	if body.TTL != nil {
		if o.TTL = time.Duration(*body.TTL); o.TTL == 0 {
			return nil, refusal.New(refusal.BadRequest, "ttl: at least one second")
		}
	}
	done, err := r.core.SubscribeTopic(ctx, r.caller.App, *body.Call, *body.Topic, o)
	if err != nil {
		return nil, err
	}
	s := done.Subscription
	return r.subscribed(done, object{"subscription": object{"id": s.ID, "topic": s.Topic, "filter": s.Filter, "once": s.Once,
		"expires_at": timestamp(s.ExpiresAt)}}), nil
}

func unsubscribeTopic(ctx context.Context, r *request) (any, error) {
	var body struct {
		Call  *wake.Call `json:"call"`
		User  *string    `json:"user"`
		Topic string     `json:"topic"`
	}
	if err := r.read(&body); err != nil {
		return nil, err
	}
	var ended int
	var err error
	switch {
	case body.Call != nil:
		ended, err = r.core.UnsubscribeTopic(ctx, r.caller.App, *body.Call, body.Topic)
	case body.User != nil:
		ended, err = r.core.UnsubscribeUser(ctx, r.caller.App, *body.User, body.Topic)
	default:
		err = missing("call or user")
	}
	return object{"unsubscribed": ended}, err
}

// aMessage is what an app says on its own topics, or to one subscription.
type aMessage struct {
	Text string         `json:"text"`
	Data jsontext.Value `json:"data"`
	ID   string         `json:"id"`
}

// object is the message's data in compact form; nil when there is none.
func (m *aMessage) object() (json.RawMessage, error) {
	data, err := compact(m.Data)
	if err == nil && data != nil && data[0] != '{' {
		err = refusal.New(refusal.BadRequest, "event.data: must be an object")
	}
	return data, err
}

func publish(ctx context.Context, r *request) (any, error) {
	var body struct {
		Topics []string  `json:"topics"`
		Event  *aMessage `json:"event"`
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
	done, err := r.core.Publish(ctx, r.caller.App, core.Publish{Topics: body.Topics, Text: body.Event.Text, Data: data, ID: body.Event.ID})
	if err != nil {
		return nil, err
	}
	return emitted(done), nil
}

func topicStatus(ctx context.Context, r *request) (any, error) {
	topic := r.http.URL.Query().Get("topic")
	status, err := r.core.TopicStatus(ctx, r.caller.App, topic)
	if err != nil {
		return nil, err
	}
	connected := 0
	for _, n := range status.Via {
		connected += n
	}
	return object{"topic": topic, "subscriptions": status.Subscriptions, "connected": connected, "via": status.Via}, nil
}

func closeTopic(ctx context.Context, r *request) (any, error) {
	var body struct {
		Topic *string `json:"topic"`
	}
	if err := r.read(&body); err != nil {
		return nil, err
	}
	if body.Topic == nil {
		return nil, missing("topic")
	}
	closed, err := r.core.CloseTopic(ctx, r.caller.App, *body.Topic)
	return object{"closed": closed}, err
}

func annotate(ctx context.Context, r *request) (any, error) {
	var body struct {
		Call *wake.Call `json:"call"`
	}
	if err := r.read(&body); err != nil {
		return nil, err
	}
	if body.Call == nil {
		return nil, missing("call")
	}
	a, who, err := r.core.Annotate(ctx, r.caller.App, *body.Call)
	if err != nil {
		return nil, err
	}
	r.addition = a
	answer := addition(a)
	answer["agent"] = agent(who)
	return answer, nil
}
