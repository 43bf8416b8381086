package wakeshift

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Emitted is what became of an emit.
type Emitted struct {
	// Matched is how many conversations the occurrence is for. Zero is no error.
	Matched int
	// Duplicate: an earlier emit had the same [ID], and this one counts for
	// nothing. Matched is then the earlier one's.
	Duplicate bool
}

// An EmitOption adds to one emit.
type EmitOption func(*emission)

// To names the one user, by the app's own id, that an occurrence of a personal
// event is for.
func To(user string) EmitOption { return func(e *emission) { e.To = user } }

// ID gives the occurrence an id, of 1 to 256 characters: emitting the same event
// with the same id again counts once.
func ID(id string) EmitOption { return func(e *emission) { e.ID = id } }

// An emission is the body of an emit.
type emission struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Payload   json.RawMessage `json:"payload"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	To        string          `json:"to,omitempty"`
}

// Emit tells everyone who subscribed with these arguments that the event has
// happened, or, if it is personal, the one user [To] names. It returns once the
// core has stored the occurrence. Arguments and payload are checked first; what
// does not fit is an [*Error] with the code bad_arguments or bad_payload.
//
// A request that may not have arrived is sent again, and counts once: without
// [ID] the occurrence has an id of its own.
func (e *Event[Args, Payload]) Emit(ctx context.Context, args Args, payload Payload, opts ...EmitOption) (Emitted, error) {
	one, err := e.Prepare(args, payload, opts...)
	if err != nil {
		return Emitted{}, err
	}
	var answer emitAnswer
	request := coreRequest{method: http.MethodPost, path: "/events/emit", body: one.body, repeatable: true}
	if err := e.event.wake.request(ctx, request, &answer); err != nil {
		return Emitted{}, err
	}
	if answer.Matched == nil {
		return Emitted{}, e.event.wake.core.badResponse(http.StatusOK)
	}
	return one.emitted(answer), nil
}

// emitAnswer is what the core says became of an emit.
type emitAnswer struct {
	Matched   *int `json:"matched"`
	Duplicate bool `json:"duplicate"`
}

func (e Emission) emitted(answer emitAnswer) Emitted {
	// A duplicate of an id made here is this very emit, sent again.
	return Emitted{Matched: *answer.Matched, Duplicate: answer.Duplicate && !e.own}
}

// newOccurrenceID makes an id that nobody else makes. Ids made one after the other
// sort so, which spares the core's database from writing all over its index.
func newOccurrenceID() string {
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(time.Now().UnixMilli()))
	return strings.ToLower("occ_" + base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(at[2:]) + rand.Text()[:16])
}

func (e *event) checkRecipient(to string) error {
	switch {
	case e.personal && to == "":
		return e.badArguments(fmt.Errorf("the event is personal: say with To whom it is for"))
	case !e.personal && to != "":
		return e.badArguments(fmt.Errorf("the event is not personal: it takes no To"))
	}
	return nil
}

// fill checks and encodes what the app emits, and renders its text.
func (e *Event[Args, Payload]) fill(body *emission, args Args, payload Payload) (err error) {
	if body.Arguments, err = e.event.encodeArguments(args); err != nil {
		return err
	}
	if body.Payload, err = e.event.payload.encode(payload); err != nil {
		return &Error{Status: http.StatusBadRequest, Code: CodeBadPayload, Message: "payload of " + e.event.name + ": " + err.Error()}
	}
	return guard("Text of "+e.event.name, func() error {
		body.Text = e.text(payload, args)
		return nil
	})
}
