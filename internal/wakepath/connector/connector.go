package connector

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/strictjson"
)

// The paths this package serves.
const (
	RedeemPath = "/redeem"
	Prefix     = "/connect/"
)

// Options of the handler. The zero value is usable.
type Options struct {
	Logger *slog.Logger // nil: discards
	// Stopping is closed when the core is about to stop: sockets are closed so that their programs come back. nil: never.
	Stopping <-chan struct{}
}

type handler struct {
	core     *core.Core
	log      *slog.Logger
	stopping <-chan struct{}
}

// New is the handler of [RedeemPath] and of every path under [Prefix].
func New(c *core.Core, o Options) http.Handler {
	h := &handler{core: c, log: o.Logger, stopping: o.Stopping}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+RedeemPath, h.redeem)
	mux.HandleFunc("GET "+Prefix+"{token}", h.connect)
	return mux
}

// redeemLimit bounds the body of a redeem.
const redeemLimit = 16 << 10

func (h *handler) redeem(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, redeemLimit))
	if err != nil {
		h.fail(w, r, refusal.New(refusal.TooLarge, "the body: at most %d bytes", redeemLimit))
		return
	}
	var ask struct {
		Ticket string `json:"ticket"`
		Thread string `json:"thread"`
	}
	if err := strictjson.Decode(body, strictjson.Limits{MaxBytes: redeemLimit}, &ask); err != nil {
		h.fail(w, r, refusal.New(refusal.BadRequest, "%s", err))
		return
	}
	url, err := h.core.Redeem(r.Context(), ask.Ticket, ask.Thread)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	answer(w, http.StatusOK, map[string]string{"url": url})
}

func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	no := refusal.Of(err)
	if no == nil {
		if r.Context().Err() == nil {
			h.log.ErrorContext(r.Context(), "a connector failed", "error", err)
		}
		no = refusal.New(refusal.Internal, "the core failed; its log says why")
	}
	answer(w, no.Status(), map[string]any{"error": map[string]string{"code": string(no.Code), "message": no.Message}})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

func (h *handler) connect(w http.ResponseWriter, r *http.Request) {
	// Whoever merely looks at the address must not take a connector's place.
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		h.fail(w, r, refusal.New(refusal.BadRequest, "this address opens a WebSocket and nothing else"))
		return
	}
	inbox, err := h.core.OpenConnector(r.Context(), r.PathValue("token"))
	if errors.Is(err, core.ErrGone) {
		h.fail(w, r, refusal.New(refusal.NotFound, "there is no conversation with that address"))
		return
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	defer inbox.Close()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // it was answered
	}
	newSocket(h, conn, inbox).run(r.Context())
}
