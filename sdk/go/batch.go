package wakeshift

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// The most a core takes in one request (docs/wire.md).
const (
	maxBatch      = 1000
	maxBatchBytes = 7 << 20 // its limit is 8 MiB
)

// An Emission is an emit that is ready to be sent: checked, with its text rendered
// and an id. Make one with [Event.Prepare] and send it with
// [Wakeshift.EmitBatch]. However often it is sent, it counts once.
type Emission struct {
	wake *Wakeshift
	body emission
	own  bool // the id was made here
}

// Prepare checks and renders what [Event.Emit] would send, and calls nobody. The
// occurrence has the id that [ID] gives, or one of its own.
func (e *Event[Args, Payload]) Prepare(args Args, payload Payload, opts ...EmitOption) (Emission, error) {
	one := Emission{wake: e.event.wake, body: emission{Name: e.event.name}}
	for _, option := range opts {
		option(&one.body)
	}
	if one.own = one.body.ID == ""; one.own {
		one.body.ID = newOccurrenceID()
	}
	if err := e.event.checkRecipient(one.body.To); err != nil {
		return Emission{}, err
	}
	if err := e.fill(&one.body, args, payload); err != nil {
		return Emission{}, err
	}
	return one, nil
}

// An EmitResult is what became of one emission of a batch.
type EmitResult struct {
	Emitted
	// Err is why it was refused or could not be sent; nil once it is stored.
	Err error
}

// EmitBatch emits many occurrences, of whichever of the app's events, in the given
// order and with few requests: up to 1,000 share one, and are stored together. It
// gives a result for each emission. One that the core refuses keeps none of the
// others back.
//
// The error is that of a request which failed as a whole. Then no more are sent,
// and the results of all that are not known to be stored have it too. Calling
// EmitBatch again with the same emissions is safe: each counts once.
func (w *Wakeshift) EmitBatch(ctx context.Context, emissions []Emission) ([]EmitResult, error) {
	results := make([]EmitResult, len(emissions))
	for begin := 0; begin < len(emissions); {
		bodies, err := w.nextBatch(emissions[begin:])
		end := begin + len(bodies)
		if err == nil {
			err = w.sendBatch(ctx, emissions[begin:end], bodies, results[begin:end])
		}
		if err != nil {
			for i := begin; i < len(results); i++ {
				results[i] = EmitResult{Err: err}
			}
			return results, err
		}
		begin = end
	}
	return results, nil
}

// nextBatch encodes as many as one request may have, at least one.
func (w *Wakeshift) nextBatch(emissions []Emission) (bodies []json.RawMessage, err error) {
	size := 0
	for _, one := range emissions[:min(len(emissions), maxBatch)] {
		if one.wake != w {
			return nil, &Error{Status: http.StatusBadRequest, Code: CodeBadArguments,
				Message: "a batch has an emission that no event of this Wakeshift has prepared"}
		}
		body, err := encodeJSON(one.body)
		if err != nil {
			return nil, fmt.Errorf("wakeshift: encoding a request: %w", err)
		}
		if size += len(body) + 1; size > maxBatchBytes && len(bodies) > 0 {
			break
		}
		bodies = append(bodies, body)
	}
	return bodies, nil
}

// sendBatch makes one request, and another one of those whose event the core did
// not know: see [Wakeshift.request].
func (w *Wakeshift) sendBatch(ctx context.Context, emissions []Emission, bodies []json.RawMessage, results []EmitResult) error {
	if err := w.postBatch(ctx, emissions, bodies, results); err != nil {
		return err
	}
	var places []int
	var again []Emission
	var againBodies []json.RawMessage
	for i, result := range results {
		if IsCode(result.Err, codeUnknownEvent) {
			places, again, againBodies = append(places, i), append(again, emissions[i]), append(againBodies, bodies[i])
		}
	}
	if len(again) == 0 {
		return nil
	}
	w.manifest.forgotten()
	second := make([]EmitResult, len(again))
	if err := w.postBatch(ctx, again, againBodies, second); err != nil {
		return err
	}
	for i, place := range places {
		results[place] = second[i]
	}
	return nil
}

func (w *Wakeshift) postBatch(ctx context.Context, emissions []Emission, bodies []json.RawMessage, results []EmitResult) error {
	var answer struct {
		Results []struct {
			emitAnswer
			Error *struct{ Code, Message, Reason string } `json:"error"`
		} `json:"results"`
	}
	request := coreRequest{method: http.MethodPost, path: "/events/emit", body: bodies, repeatable: true}
	if err := w.request(ctx, request, &answer); err != nil {
		return err
	}
	if len(answer.Results) != len(emissions) {
		return w.core.badResponse(http.StatusOK)
	}
	for i, one := range answer.Results {
		switch {
		case one.Error != nil:
			results[i] = EmitResult{Err: &Error{Status: http.StatusBadRequest, Code: one.Error.Code, Message: one.Error.Message, Reason: one.Error.Reason}}
		case one.Matched != nil:
			results[i] = EmitResult{Emitted: emissions[i].emitted(one.emitAnswer)}
		default:
			return w.core.badResponse(http.StatusOK)
		}
	}
	return nil
}
