package appapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/strictjson"
	"github.com/rouse-dev/rouse/internal/trace"
)

// batchLimit is how many bytes an array of emits may have in all. It leaves an average of 8 KiB to each of the most there may be.
const batchLimit = 8 << 20

// emit takes one emit, or many in an array.
func emit(ctx context.Context, r *request) (any, error) {
	if strictjson.IsArray(r.body) {
		return emitBatch(ctx, r)
	}
	e, err := readEmit(r.body)
	if err != nil {
		return nil, err
	}
	done, err := r.core.Emit(ctx, r.caller.App, e)
	if err != nil {
		return nil, err
	}
	return emitted(done), nil
}

func readEmit(text []byte) (core.Emit, error) {
	var body struct {
		Name      *string        `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
		Payload   jsontext.Value `json:"payload"`
		Text      string         `json:"text"`
		ID        string         `json:"id"`
		To        string         `json:"to"`
	}
	if err := decode(text, 1, &body); err != nil {
		return core.Emit{}, err
	}
	if body.Name == nil {
		return core.Emit{}, missing("name")
	}
	payload, err := compact(body.Payload)
	return core.Emit{Name: *body.Name, Arguments: json.RawMessage(body.Arguments), Payload: payload,
		Text: body.Text, ID: body.ID, To: body.To}, err
}

// emission is the answer to an emit.
type emission struct {
	Duplicate bool `json:"duplicate,omitempty"`
	Matched   int  `json:"matched"`
}

func emitted(done core.Emitted) emission { return emission{done.Duplicate, done.Matched} }

// emitBatch takes an array of emits. One that is refused is answered in its place, and spoils none of the others.
func emitBatch(ctx context.Context, r *request) (any, error) {
	items, err := strictjson.Array(r.body, strictjson.Limits{MaxBytes: batchLimit}, core.MaxBatch)
	if err != nil {
		return nil, refusal.New(refusal.BadRequest, "%s", err)
	}
	if len(items) == 0 {
		// Rather a mistake of the app's than a wish for nothing: so is a body that is no emit.
		return nil, refusal.New(refusal.BadRequest, "a batch: between 1 and %d emits", core.MaxBatch)
	}
	results := make([]any, len(items))
	good, places := make([]core.Emit, 0, len(items)), make([]int, 0, len(items))
	for i, item := range items {
		e, err := readItem(item)
		if err == nil {
			good, places = append(good, e), append(places, i)
		} else if results[i], err = r.refusedItem(i, err); err != nil {
			return nil, err
		}
	}
	done, err := r.core.EmitBatch(ctx, r.caller.App, good)
	if err != nil {
		return nil, err
	}
	for i, place := range places {
		if no := done[i].Refused; no == nil {
			results[place] = emitted(done[i].Emitted)
		} else if results[place], err = r.refusedItem(place, no); err != nil {
			return nil, err
		}
	}
	return object{"results": results}, nil
}

// readItem reads an element of a batch, under the limit of an emit that comes alone.
func readItem(item []byte) (core.Emit, error) {
	if len(item) > bodyLimit {
		return core.Emit{}, refusal.New(refusal.TooLarge, "at most %d bytes", bodyLimit)
	}
	return readEmit(item)
}

// refusedItem is the answer to an element of a batch that was refused. Its message begins with the place, as in "[3].text: …".
// An err that is no refusal is returned.
func (r *request) refusedItem(i int, err error) (any, error) {
	no := refusal.Of(err)
	if no == nil {
		return nil, err
	}
	r.core.Feed().Put(trace.Entry{Kind: trace.Refused, App: r.caller.App.ID, Code: string(no.Code), Detail: r.http.Pattern})
	placed := *no
	placed.Message = place(i, err, no) + no.Message
	return errorOf(&placed), nil
}

// place is where in a batch something was refused. Most messages begin with the field by themselves.
func place(i int, err error, no *refusal.Refusal) string {
	var bad *strictjson.Error
	switch {
	case no.Code == refusal.UnknownEvent:
		return fmt.Sprintf("[%d].name: ", i)
	case no.Code == refusal.TooLarge, errors.As(err, &bad) && bad.Field == "":
		return fmt.Sprintf("[%d]: ", i)
	}
	return fmt.Sprintf("[%d].", i)
}
