package wakeshift

import (
	"context"
	"encoding/json"
	"net/http"
)

// Subscribed is a subscription of the conversation that called a tool.
type Subscribed struct {
	// ID is the subscription's id; the same when it is renewed.
	ID string
	// Created is false when the conversation had this subscription already, which
	// is now renewed.
	Created bool
	// Agent is what the core took the calling program for.
	Agent Agent
}

// An Agent is the program a tool was called from, as the core recognised it. All
// fields may be empty.
type Agent struct {
	// Harness is the program's id.
	Harness string `json:"harness"`
	// Via is the signal it was recognised by.
	Via string `json:"via"`
	// Claimed is what the agent itself said in the argument harness.
	Claimed string `json:"claimed"`
}

// A SubscribeOption adds to one subscription.
type SubscribeOption func(*subscription)

// Once ends the subscription with its first occurrence.
func Once() SubscribeOption { return func(s *subscription) { s.Once = true } }

// A subscription is the body of a tool's subscribe and unsubscribe.
type subscription struct {
	Call      call            `json:"call"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Once      bool            `json:"once,omitempty"`
}

// Subscribe subscribes the conversation that called the tool. It is durable when
// Subscribe returns, and the tool's result will tell the agent how it is woken.
// The same arguments again renew the subscription.
//
// Arguments that do not fit are refused with the code bad_arguments, a subscriber
// that Authorize refuses with forbidden, and what the core refuses with its own
// codes. A personal event needs a user from Identify.
func (e *Event[Args, Payload]) Subscribe(ctx context.Context, call *ToolCall, args Args, opts ...SubscribeOption) (Subscribed, error) {
	body := subscription{Name: e.event.name}
	for _, option := range opts {
		option(&body)
	}
	return e.event.subscribe(ctx, call, args, body)
}

// Unsubscribe ends the conversation's subscription with these arguments; false
// means it had none. Only conversations the core can tell apart, by their session
// key or by their program's own thread, can be found again.
func (e *Event[Args, Payload]) Unsubscribe(ctx context.Context, call *ToolCall, args Args) (bool, error) {
	return e.event.unsubscribe(ctx, call, args)
}

func (e *event) subscribe(ctx context.Context, tool *ToolCall, args any, body subscription) (Subscribed, error) {
	var err error
	if body.Arguments, err = e.encodeArguments(args); err != nil {
		return Subscribed{}, err
	}
	var who Subscriber
	var made Subscribed
	err = tool.ask(ctx, e, func(call call) (err error) {
		body.Call, who = call, Subscriber{User: call.User, Client: call.Client}
		if err := e.admit(ctx, who, body.Arguments); err != nil {
			return err
		}
		made, err = e.makeSubscription(ctx, tool, body)
		return err
	})
	if err != nil {
		return Subscribed{}, err
	}
	e.subscribed(ctx, who, made.ID, body.Arguments)
	return made, nil
}

// admit checks who subscribes through a tool.
func (e *event) admit(ctx context.Context, who Subscriber, arguments json.RawMessage) error {
	if e.personal && who.User == "" {
		return &Error{Status: http.StatusForbidden, Code: CodeForbidden,
			Message: e.name + " is personal, and Identify names no user"}
	}
	if !e.allows(ctx, who, arguments) {
		return &Error{Status: http.StatusForbidden, Code: CodeForbidden,
			Message: "not allowed to subscribe to " + e.name + " with these arguments"}
	}
	return nil
}

func (e *event) makeSubscription(ctx context.Context, tool *ToolCall, body subscription) (Subscribed, error) {
	var answer struct {
		Subscription struct {
			ID      string `json:"id"`
			Created bool   `json:"created"`
		} `json:"event_subscription"`
		Session  string   `json:"session"`
		Addition addition `json:"addition"`
		Agent    Agent    `json:"agent"`
	}
	// Not repeatable: where the core cannot tell the conversation, a second
	// request would make a second one.
	request := coreRequest{method: http.MethodPost, path: "/event-subscriptions", body: body}
	if err := e.wake.request(ctx, request, &answer); err != nil {
		return Subscribed{}, err
	}
	if answer.Subscription.ID == "" {
		return Subscribed{}, e.wake.core.badResponse(http.StatusOK)
	}
	tool.keep(answer.Session, answer.Addition)
	return Subscribed{ID: answer.Subscription.ID, Created: answer.Subscription.Created, Agent: answer.Agent}, nil
}

func (e *event) unsubscribe(ctx context.Context, tool *ToolCall, args any) (bool, error) {
	arguments, err := e.encodeArguments(args)
	if err != nil {
		return false, err
	}
	var answer struct {
		Ended bool `json:"ended"`
	}
	err = tool.ask(ctx, e, func(call call) error {
		body := subscription{Call: call, Name: e.name, Arguments: arguments}
		request := coreRequest{method: http.MethodPost, path: "/event-subscriptions/unsubscribe", body: body}
		return e.wake.request(ctx, request, &answer)
	})
	return answer.Ended, err
}
