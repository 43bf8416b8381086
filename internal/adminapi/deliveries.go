package adminapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

// MaxDeliveries is how many deliveries one answer lists at most.
const MaxDeliveries = 1000

// A Delivery is one attempt at a delivery to a webhook. It names the webhook's host alone: the rest of its address may be secret.
type Delivery struct {
	ID       string    `json:"id"` // for a replay, and as DeliveryList.Before
	At       time.Time `json:"at"`
	Webhook  string    `json:"webhook"`
	Event    string    `json:"event"`
	EventID  string    `json:"event_id,omitempty"` // empty for a notice
	Notice   string    `json:"notice,omitempty"`   // gap or terminated; empty for an event
	Host     string    `json:"host"`
	Try      int       `json:"try"`                // 1 is the first
	Status   int       `json:"status,omitempty"`   // of the HTTP answer; 0 when there was none
	Category string    `json:"category,omitempty"` // of a failure
	TookMS   int64     `json:"took_ms"`
	Outcome  string    `json:"outcome"` // delivered, retrying or abandoned
	NextAt   time.Time `json:"next_at,omitzero"`
}

// A DeliveryList says which deliveries are listed. Zero fields set no bound.
type DeliveryList struct {
	Webhook string // its id, or that of the subscription whose voucher it came by
	Event   string // an event's id; of one that the app chose, with Webhook only
	Failed  bool   // only attempts that delivered nothing
	Before  string // only those before that delivery, which an earlier list ended with
	Limit   int    // at most so many; 0 is [MaxDeliveries]
}

// A Replay says what a webhook is to be sent again: one of Delivery, Event, From and Since.
type Replay struct {
	Webhook  string    `json:"webhook,omitempty"` // may be empty with Delivery
	Delivery string    `json:"delivery,omitempty"`
	Event    string    `json:"event,omitempty"` // an event's id: the core's, or the one its app chose
	From     string    `json:"from,omitempty"`  // the first event's
	To       string    `json:"to,omitempty"`    // the last event's; empty: all that came since
	Since    time.Time `json:"since,omitzero"`
}

// Replayed says what became of a replay.
type Replayed struct {
	Queued    int    `json:"queued"`
	Gone      int    `json:"gone"`                // their content is kept no more
	More      bool   `json:"more"`                // it was too much for one replay
	Next      string `json:"next,omitempty"`      // with More: from which event to go on
	Truncated bool   `json:"truncated,omitempty"` // it begins before what is kept
	Suspended bool   `json:"suspended,omitempty"` // what is queued waits until the webhook's client subscribes again
}

// Deliveries lists an app's deliveries to webhooks, the newest first.
func (c *Client) Deliveries(ctx context.Context, app string, q DeliveryList) ([]Delivery, error) {
	values := url.Values{}
	for name, value := range map[string]string{"webhook": q.Webhook, "event": q.Event, "before": q.Before} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.Failed {
		values.Set("failed", "true")
	}
	if q.Limit != 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	var answer struct{ Deliveries []Delivery }
	err := c.call(ctx, http.MethodGet, of(app, "/deliveries?"+values.Encode()), nil, &answer)
	return answer.Deliveries, err
}

// Replay sends events to a webhook again.
func (c *Client) Replay(ctx context.Context, app string, what Replay) (Replayed, error) {
	var answer Replayed
	return answer, c.call(ctx, http.MethodPost, of(app, "/deliveries/replay"), what, &answer)
}

func (h *handler) deliveries(ctx context.Context, r *http.Request) (any, error) {
	query := r.URL.Query()
	limit := MaxDeliveries
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > MaxDeliveries {
			return nil, refusal.New(refusal.BadRequest, "limit: must be a number from 1 to %d", MaxDeliveries)
		}
		limit = n
	}
	attempts, err := h.core.Attempts(ctx, core.AttemptList{App: r.PathValue("app"), Webhook: query.Get("webhook"), Event: query.Get("event"),
		Failed: query.Get("failed") == "true", Before: query.Get("before"), Limit: limit})
	list := make([]Delivery, len(attempts))
	for i, a := range attempts {
		list[i] = Delivery{ID: a.ID, At: a.At, Webhook: a.Webhook, Event: a.Event, EventID: a.Occurrence, Notice: string(a.Kind),
			Host: wake.ShownHost(a.URL), Try: a.Number, Status: a.Status, Category: a.Reason, TookMS: a.Took.Milliseconds(), Outcome: a.Outcome, NextAt: a.NextAt}
	}
	return object{"deliveries": list}, err
}

func (h *handler) replay(ctx context.Context, r *http.Request) (any, error) {
	var body Replay
	if err := read(r, &body); err != nil {
		return nil, err
	}
	done, err := h.core.Replay(ctx, core.ReplayChoice{App: r.PathValue("app"), Webhook: body.Webhook, Delivery: body.Delivery,
		Event: body.Event, From: body.From, To: body.To, Since: body.Since})
	answer := Replayed{Queued: done.Queued, Gone: done.Gone, More: done.More, Truncated: done.Truncated, Suspended: done.Suspended}
	if done.More {
		answer.Next = h.core.OccurrenceAt(done.Through + 1)
	}
	return answer, err
}
