package publish

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/strictjson"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Options of the handler. The zero value is usable.
type Options struct {
	Logger *slog.Logger // nil: discards
}

type handler struct {
	core *core.Core
	log  *slog.Logger
}

// New is the handler of every path under [core.PublishPath].
func New(c *core.Core, o Options) http.Handler {
	h := &handler{core: c, log: o.Logger}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+core.PublishPath+"{token}", h.post)
	mux.HandleFunc(core.PublishPath, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", "POST")
		h.fail(w, r, refusal.New(refusal.MethodNotAllowed, "a publish URL takes POST"))
	})
	return mux
}

// bodyLimit leaves room for a payload of the largest size written with escapes.
const bodyLimit = 2 << 20

// idHeaders are where senders put the id of what they send: Standard Webhooks, and the IETF's draft.
var idHeaders = []string{"Webhook-Id", "Idempotency-Key"}

func (h *handler) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	if err != nil {
		h.fail(w, r, refusal.New(refusal.TooLarge, "the body: at most %d bytes", bodyLimit))
		return
	}
	post, err := read(body)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	for _, name := range idHeaders {
		if id := r.Header.Get(name); id != "" {
			post.ID = id
			break
		}
	}
	done, err := h.core.PublishBy(r.Context(), r.PathValue("token"), post)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	answer := map[string]any{"matched": done.Matched}
	if done.Duplicate {
		answer["duplicate"] = true
	}
	write(w, http.StatusOK, answer)
}

// read takes a body for a JSON object if it begins like one, and for text otherwise.
func read(body []byte) (core.Post, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return core.Post{Text: string(body)}, nil
	}
	object, err := strictjson.Object(body, strictjson.Limits{MaxBytes: bodyLimit, MaxDepth: wake.MaxDepth})
	if err != nil {
		return core.Post{}, refusal.New(refusal.BadRequest, "the body: %s", err)
	}
	object, err = strictjson.Compact(object)
	return core.Post{Object: json.RawMessage(object)}, err
}

func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	no := refusal.Of(err)
	if no == nil {
		if r.Context().Err() != nil {
			return // the sender is gone
		}
		no = refusal.New(refusal.Internal, "the core failed; its log says why")
		h.log.ErrorContext(r.Context(), "a publish URL failed", "error", err)
	}
	h.core.Feed().Put(trace.Entry{Kind: trace.Refused, Code: string(no.Code), Detail: "a publish URL"})
	if no.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((no.RetryAfter+time.Second-1)/time.Second)))
	}
	write(w, no.Status(), map[string]any{"error": map[string]string{"code": string(no.Code), "message": no.Message}})
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // an error means that the sender is gone
}
