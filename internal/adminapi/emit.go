package adminapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/strictjson"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (h *handler) emit(ctx context.Context, r *http.Request) (any, error) {
	app, err := h.app(ctx, r.PathValue("app"))
	if err != nil {
		return nil, err
	}
	var body struct {
		Name      string         `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
		Payload   jsontext.Value `json:"payload"`
		Text      string         `json:"text"`
		ID        string         `json:"id"`
		To        string         `json:"to"`
	}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	payload := body.Payload
	if len(payload) > 0 {
		if payload, err = strictjson.Compact(payload); err != nil {
			return nil, err
		}
	}
	done, err := h.core.Emit(ctx, app, core.Emit{Name: body.Name, Arguments: json.RawMessage(body.Arguments),
		Payload: json.RawMessage(payload), Text: body.Text, ID: body.ID, To: body.To})
	return Emitted{ID: done.ID, Matched: done.Matched, Duplicate: done.Duplicate}, err
}

func (h *handler) app(ctx context.Context, id string) (wake.App, error) {
	apps, err := h.core.Apps(ctx)
	if err != nil {
		return wake.App{}, err
	}
	i := slices.IndexFunc(apps, func(a wake.App) bool { return a.ID == id })
	if i < 0 {
		return wake.App{}, refusal.New(refusal.UnknownApp, "there is no app %s", wake.Quote(id))
	}
	return apps[i], nil
}
