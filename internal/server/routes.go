package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/rouse-dev/rouse/internal/appapi"
	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/publish"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wakepath/connector"
	"github.com/rouse-dev/rouse/internal/wakepath/monitor"
)

// requestTime bounds reading a request and writing its answer, for everything that is no stream.
const requestTime = time.Minute

// routes are all paths of the listener.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	api := appapi.New(s.core, appapi.Options{Logger: s.log, Stopping: s.stopping})
	streams := monitor.New(s.core, monitor.Options{Logger: s.log, Stopping: s.stopping})
	connectors := connector.New(s.core, connector.Options{Logger: s.log, Stopping: s.stopping})

	mux.Handle(appapi.Prefix+"/", s.scope.authenticated(api))
	mux.Handle(core.PublishPath, s.scope.answer(publish.New(s.core, publish.Options{Logger: s.log})))
	mux.Handle(monitor.Prefix, s.scope.stream(streams))
	mux.Handle("POST "+connector.RedeemPath, s.scope.answer(connectors))
	mux.Handle(connector.RedeemPath, s.scope.answer(wrongMethod("POST")))
	mux.Handle("GET "+connector.Prefix, s.scope.stream(connectors))
	mux.Handle(connector.Prefix, s.scope.answer(wrongMethod("GET")))
	mux.Handle("GET /healthz", s.scope.answer(http.HandlerFunc(healthy)))
	mux.Handle("/healthz", s.scope.answer(wrongMethod("GET")))
	mux.Handle("GET /readyz", s.scope.answer(http.HandlerFunc(s.ready)))
	mux.Handle("/readyz", s.scope.answer(wrongMethod("GET")))
	mux.Handle("/", s.scope.answer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, refusal.New(refusal.NotFound, "there is nothing at this path: docs/wire.md lists what there is"))
	})))
	return mux
}

// healthy says that the process answers.
func healthy(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, map[string]string{"status": "ok"})
}

// ready says that the core can serve.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.leaving.Load() {
		refuse(w, refusal.New(refusal.Unavailable, "the core is about to stop"))
		return
	}
	if err := s.core.Ready(r.Context()); err != nil {
		s.log.ErrorContext(r.Context(), "the core is not ready", "error", err)
		refuse(w, refusal.New(refusal.Unavailable, "the core cannot serve now; its log says why"))
		return
	}
	write(w, http.StatusOK, map[string]string{"status": "ready"})
}

func wrongMethod(right string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", right)
		refuse(w, refusal.New(refusal.MethodNotAllowed, "this path takes %s", right))
	})
}

// refuse answers with a refusal.
func refuse(w http.ResponseWriter, no *refusal.Refusal) {
	if no.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((no.RetryAfter+time.Second-1)/time.Second)))
	}
	write(w, no.Status(), map[string]any{"error": map[string]string{"code": string(no.Code), "message": no.Message}})
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // an error means that the client is gone
}
