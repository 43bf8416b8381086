package wakeshift

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The methods of MCP Events that are served here.
const (
	methodList        = "events/list"
	methodPoll        = "events/poll"
	methodStream      = "events/stream"
	methodSubscribe   = "events/subscribe"
	methodUnsubscribe = "events/unsubscribe"
)

// modernRevision is the first revision of MCP whose results have a type.
const modernRevision = "2026-07-28"

func isModern(revision string) bool { return revision >= modernRevision }

// nativeParams are the params of an events method. They are kept as they came:
// the SDK would quote all of them in the error for a single member of the wrong
// type, and the core wants them unchanged.
type nativeParams struct {
	mcp.ParamsBase
	raw     json.RawMessage
	members map[string]json.RawMessage // nil if params is not an object
}

// UnmarshalJSON takes anything; what is wrong with it is said later, without
// quoting it.
func (p *nativeParams) UnmarshalJSON(data []byte) error {
	p.raw = append(json.RawMessage(nil), data...)
	if json.Unmarshal(data, &p.members) != nil {
		p.members = nil
		return nil
	}
	if meta, ok := p.members["_meta"]; ok {
		_ = json.Unmarshal(meta, &p.Meta) // the SDK refuses what a revision needs and is not there
	}
	return nil
}

// member is a member of params; one that is null counts as absent.
func (p *nativeParams) member(name string) (json.RawMessage, bool) {
	raw, ok := p.members[name]
	return raw, ok && string(raw) != "null"
}

// addMethods registers the events methods. The SDK refuses unknown methods
// before any middleware sees them, so they must be registered to be served.
func (a *Attached) addMethods() {
	for method, serve := range map[string]func(context.Context, *nativeRequest) (any, error){
		methodList:        func(_ context.Context, r *nativeRequest) (any, error) { return a.list(r.Params) },
		methodPoll:        a.poll,
		methodStream:      a.stream,
		methodSubscribe:   a.subscribe,
		methodUnsubscribe: a.unsubscribe,
	} {
		err := mcp.AddReceivingCustomMethod(a.server, method,
			func(ctx context.Context, session *mcp.ServerSession, params *nativeParams) (*rawResult, error) {
				return a.serve(ctx, session, params, serve)
			})
		if err != nil {
			panic("wakeshift: " + err.Error()) // the SDK serves MCP Events itself
		}
	}
}

// A nativeRequest is a request of an events method.
type nativeRequest = mcp.ServerRequest[*nativeParams]

// serve makes a whole request of the parts a custom method gets, and a result
// for the client's revision of the protocol. A panic would end the process.
func (a *Attached) serve(ctx context.Context, session *mcp.ServerSession, params *nativeParams,
	method func(context.Context, *nativeRequest) (any, error)) (result *rawResult, err error) {
	if params == nil { // there were none
		params = &nativeParams{raw: json.RawMessage("{}"), members: map[string]json.RawMessage{}}
	}
	extra, _ := ctx.Value(extraKey{}).(*mcp.RequestExtra)
	request := &nativeRequest{Session: session, Params: params, Extra: extra}
	var value any
	failure := guard("an events method", func() error {
		if params.members == nil {
			return invalidParams("they must be an object")
		}
		value, err = method(ctx, request)
		return err
	})
	var wire *jsonrpc.Error
	if errors.As(failure, &wire) {
		return nil, wire
	}
	if failure == nil {
		result, failure = newRawResult(value)
	}
	if failure != nil {
		hookFailed(a.wake.log, "a request of MCP Events failed", failure)
		return nil, internalError()
	}
	result.setResultType(isModern(request.ProtocolVersion()))
	return result, nil
}

// A nativeCall is the body of a native request to the core.
type nativeCall struct {
	Call   call            `json:"call"`
	Params json.RawMessage `json:"params"`
	// Refused: the app's Authorize says no. Which error that is, is the core's to
	// say.
	Refused bool `json:"refused,omitempty"`
	// Dialect is empty for the one the core chooses by the client.
	Dialect Dialect `json:"dialect,omitempty"`
}

func (a *Attached) poll(ctx context.Context, r *nativeRequest) (any, error) {
	asked, err := a.ask(ctx, r, true)
	if err != nil {
		return nil, err
	}
	return a.pass(ctx, "/events/poll", asked.body, true)
}

func (a *Attached) subscribe(ctx context.Context, r *nativeRequest) (any, error) {
	asked, err := a.ask(ctx, r, true)
	if err != nil {
		return nil, err
	}
	result, err := a.pass(ctx, "/events/subscribe", asked.body, true)
	if err != nil {
		return nil, err
	}
	if asked.event != nil {
		var made struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(result, &made) == nil && made.ID != "" {
			asked.event.subscribed(ctx, asked.who, made.ID, asked.arguments)
		}
	}
	return result, nil
}

// unsubscribe does not ask Authorize: who has lost a right may still let go.
func (a *Attached) unsubscribe(ctx context.Context, r *nativeRequest) (any, error) {
	asked, err := a.ask(ctx, r, false)
	if err != nil {
		return nil, err
	}
	return a.pass(ctx, "/events/unsubscribe", asked.body, false)
}

// An asked is a native request that passed what is checked here.
type asked struct {
	body      nativeCall
	event     *event          // nil: the app has none of that name, which the core answers
	arguments json.RawMessage // without the voucher
	who       Subscriber
}

// ask checks a native request and packs it for the core.
func (a *Attached) ask(ctx context.Context, r *nativeRequest, authorize bool) (*asked, error) {
	name, err := r.Params.name()
	if err != nil {
		return nil, err
	}
	if r.Extra != nil {
		if err := checkNameHeader(r.Extra.Header, name); err != nil {
			return nil, err
		}
	}
	arguments, err := r.Params.checkShapes()
	if err != nil {
		return nil, err
	}
	out := &asked{event: a.wake.manifest.event(name)}
	if out.event != nil {
		if out.arguments, err = out.event.checkArguments(arguments); err != nil {
			var refusal *Error
			errors.As(err, &refusal)
			return nil, invalidParams(refusal.Message)
		}
	}
	packed := packCall(r, r.Params.Meta)
	who, err := a.identify(ctx, r.Extra, packed.Client)
	if err != nil {
		return nil, err
	}
	packed.User = who.User
	out.who = Subscriber{User: packed.User, Client: packed.Client, Native: true}
	out.body = nativeCall{Call: packed, Params: r.Params.raw, Dialect: a.opts.Dialect}
	if authorize && out.event != nil {
		out.body.Refused = !out.event.allows(ctx, out.who, out.arguments)
	}
	return out, nil
}

func (p *nativeParams) name() (name string, err error) {
	raw, ok := p.member("name")
	if !ok || json.Unmarshal(raw, &name) != nil {
		return "", invalidParams("name: it must be the name of an event")
	}
	return name, nil
}

// checkShapes checks the types of the members that have one whatever the event
// is, and returns the arguments.
func (p *nativeParams) checkShapes() (arguments map[string]json.RawMessage, err error) {
	if raw, ok := p.member("arguments"); ok && json.Unmarshal(raw, &arguments) != nil {
		return nil, invalidParams("arguments: they must be an object")
	}
	var cursor string
	if raw, ok := p.member("cursor"); ok && json.Unmarshal(raw, &cursor) != nil {
		return nil, invalidParams("cursor: it must be a string or null")
	}
	for _, name := range []string{"maxEvents", "maxAgeMs"} {
		var number float64
		if raw, ok := p.member(name); ok && (json.Unmarshal(raw, &number) != nil || number != math.Trunc(number)) {
			return nil, invalidParams(name + ": it must be an integer")
		}
	}
	return arguments, nil
}

// pass asks the core and returns its result, or its error, as they are.
func (a *Attached) pass(ctx context.Context, path string, body nativeCall, repeatable bool) (json.RawMessage, error) {
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *jsonrpc.Error  `json:"error"`
	}
	request := coreRequest{method: http.MethodPost, path: path, body: body, repeatable: repeatable}
	if err := a.wake.request(ctx, request, &answer); err != nil {
		var refusal *Error
		if errors.As(err, &refusal) && refusal.Status == http.StatusBadRequest {
			return nil, invalidParams(refusal.Message) // what the client sent is no good to the core
		}
		return nil, err
	}
	if answer.Error != nil {
		return nil, answer.Error
	}
	if len(answer.Result) == 0 {
		return nil, a.wake.core.badResponse(http.StatusOK)
	}
	return answer.Result, nil
}
