package appapi

import (
	"net/http"
	"strings"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wakepath/native"
)

// streamsPath is where an app's process connects for the native streams of its clients.
const streamsPath = "/events/streams"

// streams lets an app in as any call does, and goes on with a WebSocket.
func (h *handler) streams(w http.ResponseWriter, r *http.Request) {
	caller, err := h.authenticate(r.Context(), r)
	if err != nil {
		h.fail(w, r, "", err)
		return
	}
	if err := h.core.AllowApp(caller.App); err != nil {
		h.fail(w, r, caller.App.ID, err)
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		h.fail(w, r, caller.App.ID, refusal.New(refusal.BadRequest, "this call opens a WebSocket and nothing else"))
		return
	}
	if err := native.Serve(w, r, h.core, caller, native.Options{Logger: h.log, Stopping: h.stopping}); err != nil {
		h.fail(w, r, caller.App.ID, err)
	}
}
