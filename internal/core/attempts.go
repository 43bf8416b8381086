package core

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// An AttemptList says which attempts at an app's webhook deliveries are listed. Zero fields set no bound, but App is required.
type AttemptList struct {
	App     string
	Webhook string // its id, or that of the conversation's subscription whose voucher it came by
	Event   string // an occurrence's id; of one that its app chose, with Webhook only
	Failed  bool   // only those that delivered nothing
	Before  string // only those before that delivery, as an earlier list named it
	Limit   int    // at most so many; 0 is none
}

// A DeliveryAttempt is one try at a webhook delivery, as an operator sees it.
type DeliveryAttempt struct {
	wake.Attempt
	ID         string // names the delivery, in lists and for a replay
	Event      string // the webhook's
	URL        string // the webhook's: only its host is for showing
	Occurrence string // the occurrence's id; empty for a notice
}

// Attempts lists what was tried, the newest first. It is refused for an app, a webhook, an event or a delivery that is not there.
func (c *Core) Attempts(ctx context.Context, q AttemptList) (attempts []DeliveryAttempt, err error) {
	err = c.store.View(ctx, func(r store.Reader) error {
		attempts = nil
		asked, err := c.attemptQueries(r, q)
		if err != nil {
			return err
		}
		var found []wake.Attempt
		for _, one := range asked {
			of, err := r.Attempts(one)
			if err != nil {
				return err
			}
			found = append(found, of...)
		}
		slices.SortFunc(found, func(a, b wake.Attempt) int { return cmp.Compare(b.N, a.N) })
		attempts, err = c.asSeen(r, found[:min(len(found), max(q.Limit, 0))])
		return err
	})
	return attempts, fault(err)
}

// attemptQueries asks for a list, webhook by webhook where some were named.
func (c *Core) attemptQueries(r store.Reader, q AttemptList) ([]store.AttemptQuery, error) {
	if _, err := r.App(q.App); errors.Is(err, store.ErrNotFound) {
		return nil, refusal.New(refusal.UnknownApp, "there is no app %s", wake.Quote(q.App))
	} else if err != nil {
		return nil, err
	}
	all := store.AttemptQuery{App: q.App, Failed: q.Failed, Limit: q.Limit}
	if q.Before != "" {
		before, ok := parseDeliveryID(q.Before)
		if !ok {
			return nil, refusal.New(refusal.BadRequest, "before: %s is no delivery's id: `rouse deliveries` lists them", wake.Quote(q.Before))
		}
		all.Before = before
	}
	var hooks []wake.Webhook
	var err error
	if q.Webhook != "" {
		if hooks, err = webhooksOf(r, q.App, q.Webhook); err != nil {
			return nil, err
		}
	}
	if q.Event != "" {
		if all.Seq, err = c.placeAmong(r, hooks, q.Event); err != nil {
			return nil, err
		}
	}
	if q.Webhook == "" {
		return []store.AttemptQuery{all}, nil
	}
	queries := make([]store.AttemptQuery, len(hooks))
	for i, hook := range hooks {
		queries[i] = all
		queries[i].Webhook = hook.ID
	}
	return queries, nil
}

// webhooksOf finds the webhook with an id, or those that came by the voucher of the subscription with it: as many as its client
// has endpoints.
func webhooksOf(r store.Reader, app, id string) ([]wake.Webhook, error) {
	hook, err := webhookOf(r, app, id)
	if !errors.Is(err, store.ErrNotFound) {
		return []wake.Webhook{hook}, err
	}
	all, err := r.WebhooksOfApp(app)
	if err != nil {
		return nil, err
	}
	var hooks []wake.Webhook
	for _, w := range all {
		if w.Principal == wake.VoucherPrincipal(id) {
			hooks = append(hooks, w)
		}
	}
	if len(hooks) == 0 {
		return nil, refusal.New(refusal.UnknownSubscription,
			"the app %s has no webhook %s, nor one of a subscription with that id: `rouse subscriptions --json` lists those it has", wake.Quote(app), wake.Quote(id))
	}
	return hooks, nil
}

// placeAmong is the place of an occurrence that is named for a list.
func (c *Core) placeAmong(r store.Reader, hooks []wake.Webhook, id string) (wake.Seq, error) {
	if len(hooks) > 0 {
		return c.placeFor(r, hooks[0], id) // hooks of one voucher are all for its event
	}
	if seq, ok := wake.ParseOccurrenceID(c.epoch, id); ok {
		return seq, nil
	}
	return 0, refusal.New(refusal.BadRequest, "event: %s is no id of this core: name the webhook too, if it is an id that the app chose", wake.Quote(id))
}

// asSeen adds to attempts what an operator knows them by.
func (c *Core) asSeen(r store.Reader, found []wake.Attempt) ([]DeliveryAttempt, error) {
	var attempts []DeliveryAttempt
	hooks := map[string]wake.Webhook{}
	for _, a := range found {
		hook, known := hooks[a.Webhook]
		if !known {
			var err error
			if hook, err = r.Webhook(a.Webhook); err != nil { // an attempt goes with its webhook
				return nil, err
			}
			hooks[a.Webhook] = hook
		}
		one := DeliveryAttempt{Attempt: a, ID: deliveryID(a.N), Event: hook.Event, URL: hook.URL}
		if a.Kind == wake.DeliveryOccurrence {
			one.Occurrence = wake.OccurrenceID(c.epoch, a.Seq)
		}
		attempts = append(attempts, one)
	}
	return attempts, nil
}
