package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/strictjson"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Options of the handler. The zero value is usable.
type Options struct {
	Status   Status          // what /v1/status says; Apps is counted
	Scratch  string          // directory for copies on their way, the core's alone; empty: no backups
	Metrics  http.Handler    // serves /metrics; nil: there is none
	Logger   *slog.Logger    // nil: discards
	Stopping <-chan struct{} // closed when the core stops, so that tails end; nil: never
}

// bodyLimit leaves room for a payload of the largest size written with escapes.
const bodyLimit = 2 << 20

type handler struct {
	core    *core.Core
	o       Options
	copying sync.Mutex // held while a backup is made
}

// New is the handler of the administration API.
func New(c *core.Core, o Options) http.Handler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &handler{core: c, o: o}
	mux := http.NewServeMux()
	for pattern, answer := range map[string]endpoint{
		"GET /v1/status":                        h.status,
		"GET /v1/apps":                          h.apps,
		"POST /v1/apps":                         h.createApp,
		"DELETE /v1/apps/{app}":                 h.deleteApp,
		"GET /v1/apps/{app}/keys":               h.keys,
		"POST /v1/apps/{app}/keys":              h.createKey,
		"DELETE /v1/apps/{app}/keys/{key}":      h.revokeKey,
		"POST /v1/apps/{app}/emit":              h.emit,
		"GET /v1/apps/{app}/subscriptions":      h.subscriptions,
		"GET /v1/apps/{app}/deliveries":         h.deliveries,
		"POST /v1/apps/{app}/deliveries/replay": h.replay,
		"GET /v1/check":                         h.check,
	} {
		mux.HandleFunc(pattern, h.serve(answer))
	}
	mux.HandleFunc("GET /v1/tail", h.tail)
	mux.HandleFunc("POST /v1/backup", h.backup)
	if o.Metrics != nil {
		mux.Handle("GET /metrics", o.Metrics)
	}
	mux.HandleFunc("/", h.serve(func(context.Context, *http.Request) (any, error) {
		return nil, refusal.New(refusal.NotFound, "there is no such call")
	}))
	return mux
}

// An endpoint answers a call with one JSON object.
type endpoint func(ctx context.Context, r *http.Request) (answer any, err error)

type object map[string]any

func (h *handler) serve(answer endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, bodyLimit)
		result, err := answer(r.Context(), r)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		h.write(w, r, http.StatusOK, result)
	}
}

// refuse answers with a refusal, or with internal for a fault, which is logged.
func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	no := refusal.Of(err)
	if no == nil {
		no = refusal.New(refusal.Internal, "the core failed; its log says why")
		h.o.Logger.ErrorContext(r.Context(), "an administrative call failed", "route", r.Pattern, "error", err)
	}
	h.write(w, r, no.Status(), object{"error": object{"code": no.Code, "message": no.Message}})
}

func (h *handler) write(w http.ResponseWriter, r *http.Request, status int, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		h.o.Logger.ErrorContext(r.Context(), "an answer could not be written", "route", r.Pattern, "error", err)
		http.Error(w, "internal", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // an error means that the client is gone
}

// read decodes the request's body.
func read(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return refusal.New(refusal.TooLarge, "the body: at most %d bytes", bodyLimit)
	}
	if err != nil {
		return refusal.New(refusal.BadRequest, "the body ended early")
	}
	err = strictjson.Decode(body, strictjson.Limits{MaxBytes: bodyLimit, MaxDepth: wake.MaxDepth + 1}, into)
	var bad *strictjson.Error
	if errors.As(err, &bad) {
		return refusal.New(refusal.BadRequest, "%s", bad)
	}
	return err
}

func (h *handler) status(ctx context.Context, _ *http.Request) (any, error) {
	apps, err := h.core.Apps(ctx)
	status := h.o.Status
	status.Apps = len(apps)
	return status, err
}

func (h *handler) apps(ctx context.Context, _ *http.Request) (any, error) {
	apps, err := h.core.Apps(ctx)
	list := make([]App, len(apps))
	for i, app := range apps {
		list[i] = App(app)
	}
	return object{"apps": list}, err
}

func (h *handler) createApp(ctx context.Context, r *http.Request) (any, error) {
	var body struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	app, err := h.core.CreateApp(ctx, body.ID, body.Name)
	return App(app), err
}

func (h *handler) deleteApp(ctx context.Context, r *http.Request) (any, error) {
	return object{}, h.core.DeleteApp(ctx, r.PathValue("app"))
}

func (h *handler) keys(ctx context.Context, r *http.Request) (any, error) {
	keys, err := h.core.Keys(ctx, r.PathValue("app"))
	list := make([]Key, len(keys))
	for i, key := range keys {
		list[i] = keyOf(key)
	}
	return object{"keys": list}, err
}

func keyOf(k wake.Key) Key {
	return Key{ID: k.ID, App: k.App, Name: k.Name, CreatedAt: k.CreatedAt, RevokedAt: k.RevokedAt}
}

func (h *handler) createKey(ctx context.Context, r *http.Request) (any, error) {
	var body struct {
		Name string `json:"name"`
	}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	key, secret, err := h.core.CreateKey(ctx, r.PathValue("app"), body.Name)
	return NewKey{Key: keyOf(key), Secret: secret.Reveal()}, err
}

func (h *handler) revokeKey(ctx context.Context, r *http.Request) (any, error) {
	return object{}, h.core.RevokeKey(ctx, r.PathValue("app"), r.PathValue("key"))
}

func (h *handler) subscriptions(ctx context.Context, r *http.Request) (any, error) {
	standing, hooks, err := h.core.Standing(ctx, r.PathValue("app"))
	if err != nil {
		return nil, err
	}
	list := make([]Subscription, 0, len(standing)+len(hooks))
	for _, s := range standing {
		sub, conversation := s.Subscription, s.Conversation
		list = append(list, Subscription{ID: sub.ID, App: sub.App, Event: sub.Event, Topic: sub.Topic, Arguments: sub.Arguments,
			Once: sub.Once, Conversation: sub.Conversation, Harness: conversation.Harness, Client: conversation.Client,
			User: sub.User, Via: s.Via, CreatedAt: sub.CreatedAt, ExpiresAt: sub.ExpiresAt})
	}
	for _, w := range hooks {
		list = append(list, Subscription{ID: w.ID, App: w.App, Event: w.Event, Topic: w.Topic, Arguments: w.Arguments, User: w.User,
			Via: ViaWebhook, WebhookHost: wake.ShownHost(w.URL), LastError: w.Health.LastError, CreatedAt: w.CreatedAt, ExpiresAt: w.ExpiresAt})
	}
	return object{"subscriptions": list}, nil
}
