package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Prefix is the path under which streams are served.
const Prefix = "/w/"

// Options of the handler. The zero value is usable.
type Options struct {
	Logger *slog.Logger // nil: discards
	// Stopping is closed when the core is about to stop: streams are cut, so that their commands come back. nil: never.
	Stopping <-chan struct{}
}

type handler struct {
	core     *core.Core
	log      *slog.Logger
	stopping <-chan struct{}
}

// New is the handler of streams. It serves every path under [Prefix]: the stream itself, one message in full, and the messages
// of a digest. A token that is not one of a conversation here is answered 204 by the stream, which ends its command.
func New(c *core.Core, o Options) http.Handler {
	h := &handler{core: c, log: o.Logger, stopping: o.Stopping}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Prefix+"{token}", h.stream)
	mux.HandleFunc("GET "+Prefix+"{token}/messages", h.messages)
	mux.HandleFunc("GET "+Prefix+"{token}/messages/{id}", h.message)
	// Anything else under the prefix is a command of another time: it too must end.
	mux.HandleFunc(Prefix, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return mux
}

// whole is the address of one message in full.
func (h *handler) whole(token, id string) string {
	return h.core.PublicURL() + Prefix + token + "/messages/" + id
}

// digest is the address of messages that were read one after the other, of the log or of one replay.
func (h *handler) digest(token string, folded []core.Message) string {
	query := url.Values{"from": {folded[0].ID}, "through": {folded[len(folded)-1].ID}}
	if replay := folded[0].Replay; replay != "" {
		query.Set("replay", replay)
	}
	return h.core.PublicURL() + Prefix + token + "/messages?" + query.Encode()
}

// A message in full, as these addresses give it.
type full struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	At      string          `json:"at"`
	Subject string          `json:"subject"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (h *handler) message(w http.ResponseWriter, r *http.Request) {
	seq, ok := wake.ParseOccurrenceID(h.core.Epoch(), r.PathValue("id"))
	if !ok {
		http.Error(w, "there is no message with that id here", http.StatusNotFound)
		return
	}
	list, err := h.core.FetchOne(r.Context(), r.PathValue("token"), seq)
	h.give(w, r, list, err)
}

func (h *handler) messages(w http.ResponseWriter, r *http.Request) {
	first, okFirst := wake.ParseOccurrenceID(h.core.Epoch(), r.URL.Query().Get("from"))
	last, okLast := wake.ParseOccurrenceID(h.core.Epoch(), r.URL.Query().Get("through"))
	if !okFirst || !okLast {
		http.Error(w, "from and through: ids of messages", http.StatusNotFound)
		return
	}
	list, err := h.core.Fetch(r.Context(), r.PathValue("token"), r.URL.Query().Get("replay"), first-1, last, maxGiven)
	h.give(w, r, list, err)
}

// maxGiven bounds how many messages one address gives.
const maxGiven = 1000

func (h *handler) give(w http.ResponseWriter, r *http.Request, list []core.Message, err error) {
	if errors.Is(err, core.ErrGone) || err == nil && len(list) == 0 {
		http.Error(w, "there is no such message for this conversation, or it is no longer kept", http.StatusNotFound)
		return
	}
	if err != nil {
		h.failed(r.Context(), err)
		http.Error(w, "the core failed", http.StatusInternalServerError)
		return
	}
	header(w, "application/x-ndjson")
	e := json.NewEncoder(w)
	for _, m := range list {
		if e.Encode(full{string(m.Kind), m.ID, m.At.UTC().Format("2006-01-02T15:04:05.000Z"), m.Text, m.Data}) != nil {
			return
		}
	}
}

// header is what keeps proxies and caches from holding a stream back.
func header(w http.ResponseWriter, contentType string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-cache, no-store, no-transform")
	w.Header().Set("X-Accel-Buffering", "no")
	w.Header().Set("Referrer-Policy", "no-referrer")
}

func (h *handler) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		h.log.ErrorContext(ctx, "a stream failed; its command comes back", "error", err)
	}
}
