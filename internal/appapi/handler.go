package appapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/strictjson"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Prefix is the path under which the API is served.
const Prefix = "/api/apps/v1"

// Options of the handler. The zero value is usable.
type Options struct {
	Logger *slog.Logger // nil: discards
	// Stopping is closed when the core is about to stop: connections with native streams are closed so that apps come back. nil: never.
	Stopping <-chan struct{}
}

type handler struct {
	core     *core.Core
	log      *slog.Logger
	stopping <-chan struct{}
	mux      *http.ServeMux
}

// New is the handler of the app API. It serves every path under [Prefix].
func New(c *core.Core, o Options) http.Handler {
	h := &handler{core: c, log: o.Logger, stopping: o.Stopping, mux: http.NewServeMux()}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	methods := map[string][]string{}
	for _, route := range routes {
		h.mux.HandleFunc(route.method+" "+Prefix+route.path, h.serve(route))
		methods[route.path] = append(methods[route.path], route.method)
	}
	h.mux.HandleFunc("GET "+Prefix+streamsPath, h.streams)
	methods[streamsPath] = []string{"GET"}
	for path, allowed := range methods {
		h.mux.HandleFunc(Prefix+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			h.fail(w, r, "", refusal.New(refusal.MethodNotAllowed, "this call takes %s", strings.Join(allowed, " or ")))
		})
	}
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, "", refusal.New(refusal.NotFound, "there is no such call: docs/wire.md lists them"))
	})
	return h.mux
}

// A request is one call by an app that was let in.
type request struct {
	core   *core.Core
	caller core.Caller
	http   *http.Request
	body   []byte
	// addition is what the answer carries for the agent. It is settled once it is known whether the answer was written whole.
	addition core.Addition
}

// An endpoint answers a call. The answer is one JSON object.
type endpoint func(ctx context.Context, r *request) (answer any, err error)

type route struct {
	method, path string
	answer       endpoint
	limit        int // bytes of the body
}

// arrayLimits has the calls that also take an array, and how many bytes such a body may have.
var arrayLimits = map[string]int{"/events/emit": batchLimit}

// bodyLimit leaves room for a payload of the largest size written with escapes.
const bodyLimit = 2 << 20

var routes = []route{
	{"GET", "/app", app, 0},
	{"PUT", "/manifest", putManifest, wake.MaxManifest},
	{"POST", "/events/emit", emit, bodyLimit},
	{"POST", "/event-subscriptions", subscribeEvent, bodyLimit},
	{"POST", "/event-subscriptions/unsubscribe", unsubscribeEvent, bodyLimit},
	{"POST", "/event-subscriptions/end", endSubscription, bodyLimit},
	{"POST", "/event-subscriptions/list", listSubscriptions, bodyLimit},
	{"POST", "/event-tools", eventTools, bodyLimit},
	{"POST", "/event-tools/call", callEventTool, bodyLimit},
	{"POST", "/events/publish-urls", makeEventURL, bodyLimit},
	{"DELETE", "/events/publish-urls/{id}", revokeURL, 0},
	{"POST", "/events/poll", poll, bodyLimit},
	{"POST", "/events/subscribe", subscribeWebhook, bodyLimit},
	{"POST", "/events/unsubscribe", unsubscribeWebhook, bodyLimit},
	{"POST", "/topics/subscribe", subscribeTopic, bodyLimit},
	{"POST", "/topics/unsubscribe", unsubscribeTopic, bodyLimit},
	{"POST", "/topics/publish", publish, bodyLimit},
	{"POST", "/topics/publish-urls", makeTopicURL, bodyLimit},
	{"GET", "/topics/status", topicStatus, 0},
	{"POST", "/topics/close", closeTopic, bodyLimit},
	{"POST", "/topics/annotate", annotate, bodyLimit},
	{"GET", "/subscriptions/{id}", subscriptionStatus, 0},
	{"POST", "/subscriptions/{id}/send", sendToSubscription, bodyLimit},
	{"POST", "/subscriptions/{id}/end", endByID, bodyLimit},
	{"POST", "/users/forget", forgetUser, bodyLimit},
	{"POST", "/workspaces", workspace, bodyLimit},
	{"POST", "/workspaces/{workspace}/agents", addAgent, bodyLimit},
	{"POST", "/workspaces/{workspace}/agents/{agent}/token", agentGrant, 0},
}

// settleTime bounds the work after an answer.
const settleTime = 10 * time.Second

func (h *handler) serve(route route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		caller, err := h.authenticate(ctx, r)
		if err != nil {
			h.fail(w, r, "", err)
			return
		}
		if err := h.core.AllowApp(caller.App); err != nil {
			h.fail(w, r, caller.App.ID, err)
			return
		}
		req := &request{core: h.core, caller: caller, http: r}
		if req.body, err = route.read(w, r); err != nil {
			h.fail(w, r, caller.App.ID, err)
			return
		}
		answer, err := route.answer(ctx, req)
		if err != nil {
			h.fail(w, r, caller.App.ID, err)
			return
		}
		arrived := write(w, http.StatusOK, answer) == nil
		if !req.addition.Holds() {
			return
		}
		arrived = arrived && http.NewResponseController(w).Flush() == nil
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
		if err := req.addition.Settle(after, arrived); err != nil {
			h.log.ErrorContext(ctx, "what was handed over could not be recorded, and will be handed over again", "route", r.Pattern, "error", err)
		}
	}
}

func (h *handler) authenticate(ctx context.Context, r *http.Request) (core.Caller, error) {
	token := bearer(r)
	if token == "" {
		return core.Caller{}, refusal.New(refusal.Unauthorized, "the Authorization header must be Bearer and an assertion")
	}
	return h.core.Authenticate(ctx, token)
}

// bearer is the request's assertion; empty when it has none.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// atFirst bounds what is set aside for a body before any of it is there.
const atFirst = 64 << 10

// read reads the body of a request, whole and within the limit.
func (route route) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	most := max(route.limit, arrayLimits[route.path])
	if most == 0 {
		return nil, nil
	}
	body := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), atFirst)+bytes.MinRead))
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, int64(most)))
	if !strictjson.IsArray(body.Bytes()) {
		most = route.limit
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge) || body.Len() > most:
		return nil, refusal.New(refusal.TooLarge, "the body: at most %d bytes", most)
	case err != nil:
		return nil, refusal.New(refusal.BadRequest, "the body ended early")
	}
	return body.Bytes(), nil
}

// fail answers with a refusal, or with internal for a fault, which is logged.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, app string, err error) {
	no := refusal.Of(err)
	switch {
	case no != nil:
	case r.Context().Err() != nil:
		// Most often the client is gone. Where the core is stopping it is there still, and must not take silence for success.
		no = refusal.New(refusal.Unavailable, "the request ended before it was answered")
	default:
		no = refusal.New(refusal.Internal, "the core failed; its log says why")
		h.log.ErrorContext(r.Context(), "a call failed", "route", r.Pattern, "app", app, "error", err)
	}
	// The route and not the path: that is whatever a stranger chose to send to the operator's terminal.
	h.core.Feed().Put(trace.Entry{Kind: trace.Refused, App: app, Code: string(no.Code), Detail: r.Pattern})
	if no.Code == refusal.Unauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if no.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((no.RetryAfter+time.Second-1)/time.Second)))
	}
	_ = write(w, no.Status(), errorOf(no))
}

// errorOf is a refusal as an answer.
func errorOf(no *refusal.Refusal) object {
	detail := object{"code": no.Code, "message": no.Message}
	if no.Reason != "" {
		detail["reason"] = no.Reason
	}
	return object{"error": detail}
}

// write writes one JSON object. An error means that the client did not get it whole.
func write(w http.ResponseWriter, status int, answer any) error {
	body, err := json.Marshal(answer)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err = w.Write(body)
	return err
}

// read decodes the request's body into a struct; see [strictjson.Decode]. Members of the struct may be [wake.MaxDepth] levels deep.
func (r *request) read(into any) error { return r.readAround(1, into) }

// readAround is read for a body with that many levels around what may be [wake.MaxDepth] levels deep.
func (r *request) readAround(levels int, into any) error { return decode(r.body, levels, into) }

// decode is read for what is a body or a part of one. Its errors are refusals, those for what is no good JSON around the
// [strictjson.Error].
func decode(body []byte, levels int, into any) error {
	err := strictjson.Decode(body, strictjson.Limits{MaxBytes: wake.MaxManifest, MaxDepth: wake.MaxDepth + levels}, into)
	var bad *strictjson.Error
	if errors.As(err, &bad) {
		return fmt.Errorf("%w (%w)", refusal.New(refusal.BadRequest, "%s", bad), bad)
	}
	return err
}
