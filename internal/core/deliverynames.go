package core

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// deliveryPrefix begins the id by which people name a delivery: that of one of its attempts.
const deliveryPrefix = "dlv_"

// deliveryID is the id of the delivery that an attempt was made for.
func deliveryID(attempt int64) string { return deliveryPrefix + strconv.FormatInt(attempt, 10) }

// parseDeliveryID gives the attempt's number; ok is false for any other text.
func parseDeliveryID(id string) (attempt int64, ok bool) {
	digits, found := strings.CutPrefix(id, deliveryPrefix)
	if !found {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n > 0 && deliveryID(n) == id
}

// A ReplayChoice says in ids what an app's webhook is to be sent again: one of Delivery, Event, From and Since.
type ReplayChoice struct {
	App      string
	Webhook  string    // may be left out with Delivery
	Delivery string    // as [DeliveryAttempt] names it
	Event    string    // an occurrence's id: this core's, or the one its app gave it
	From, To string    // the first and the last occurrence's ids; without To it is the log's end
	Since    time.Time // what happened then or later
}

// Replay is [Core.ReplayDeliveries] of what was chosen. It is refused when there is no such webhook, or nothing with that id.
func (c *Core) Replay(ctx context.Context, choice ReplayChoice) (ReplayedDeliveries, error) {
	var q ReplayQuery
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		q, err = c.chosen(r, choice)
		return err
	})
	if err != nil {
		return ReplayedDeliveries{}, fault(err)
	}
	return c.ReplayDeliveries(ctx, q)
}

// chosen gives the places of what was chosen by ids.
func (c *Core) chosen(r store.Reader, choice ReplayChoice) (q ReplayQuery, err error) {
	if err := choice.check(); err != nil {
		return q, err
	}
	if choice.Delivery != "" {
		return chosenDelivery(r, choice)
	}
	hook, err := replayable(r, choice.App, choice.Webhook)
	if err != nil {
		return q, err
	}
	q = ReplayQuery{App: choice.App, Webhook: hook.ID, Since: choice.Since}
	first, last := choice.From, choice.To
	if choice.Event != "" {
		first, last = choice.Event, choice.Event
	}
	if first != "" {
		if q.From, err = c.placeFor(r, hook, first); err != nil {
			return q, err
		}
	}
	if last != "" {
		q.To, err = c.placeFor(r, hook, last)
	}
	return q, err
}

// check refuses a choice of nothing, and one of several things.
func (choice ReplayChoice) check() error {
	chosen := 0
	for _, is := range []bool{choice.Delivery != "", choice.Event != "", choice.From != "", !choice.Since.IsZero()} {
		if is {
			chosen++
		}
	}
	switch {
	case chosen != 1:
		return refusal.New(refusal.BadRequest, "say what to send again by one of delivery, event, from and since")
	case choice.To != "" && choice.From == "":
		return refusal.New(refusal.BadRequest, "to: needs from, the event to begin with")
	}
	return nil
}

// chosenDelivery gives the place of one delivery, and its webhook.
func chosenDelivery(r store.Reader, choice ReplayChoice) (q ReplayQuery, err error) {
	unknown := refusal.New(refusal.BadRequest, "there is no delivery %s of the app %s, or it is kept no more: `rouse deliveries` lists what is",
		wake.Quote(choice.Delivery), wake.Quote(choice.App))
	n, ok := parseDeliveryID(choice.Delivery)
	if !ok {
		return q, unknown
	}
	found, err := r.Attempts(store.AttemptQuery{App: choice.App, Before: n + 1, Limit: 1})
	if err != nil {
		return q, err
	}
	if len(found) == 0 || found[0].N != n {
		return q, unknown
	}
	a := found[0]
	switch {
	case choice.Webhook != "" && choice.Webhook != a.Webhook:
		return q, refusal.New(refusal.BadRequest, "the delivery %s was one to %s, not to the webhook named", choice.Delivery, a.Webhook)
	case a.Kind != wake.DeliveryOccurrence:
		return q, refusal.New(refusal.BadRequest, "the delivery %s was a notice, and those are not sent again: choose one of an event", choice.Delivery)
	}
	return ReplayQuery{App: choice.App, Webhook: a.Webhook, From: a.Seq, To: a.Seq}, nil
}

// placeFor is the place of an occurrence that is named beside a webhook: by its id within this core, or by the id its app gave it.
func (c *Core) placeFor(r store.Reader, hook wake.Webhook, id string) (wake.Seq, error) {
	log, err := r.Log()
	if err != nil {
		return 0, err
	}
	if seq, ok := wake.ParseOccurrenceID(c.epoch, id); ok && seq <= log.Head {
		return seq, nil
	}
	var o wake.Occurrence
	err = store.ErrNotFound
	if wake.CheckString("event", id, wake.MaxKey) == nil {
		o, err = r.OccurrenceOf(hook.App, hook.Event, id)
	}
	if errors.Is(err, store.ErrNotFound) {
		return 0, refusal.New(refusal.BadRequest, "there is no event %s among those of %s: `rouse deliveries --webhook %s` lists what was delivered",
			wake.Quote(id), hook.Event, hook.ID)
	}
	return o.Seq, err
}

// OccurrenceAt is the id of a place in the log, whether or not anything is there.
func (c *Core) OccurrenceAt(seq wake.Seq) string { return wake.OccurrenceID(c.epoch, seq) }
