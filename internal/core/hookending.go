package core

import (
	"context"
	"errors"
	"strings"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Why a webhook ended, as it is kept until its endpoint was told ([wake.Webhook.EndReason]). Of the last two a slash and a word
// follow: which schema changed, and how the endpoint failed.
const (
	endedWithEvent = "event_removed"
	endedByApp     = "app"
	endedRefused   = "refused"
	endedToolsOnly = "tools_only"
	endedBySchema  = "schema_changed"
	endedFailing   = "failing"
)

// whyEnded is the refusal that a webhook's endpoint is told when it has ended.
func whyEnded(w wake.Webhook) *refusal.Refusal {
	reason, detail, _ := strings.Cut(w.EndReason, "/")
	switch reason {
	case endedWithEvent:
		return refusal.New(refusal.UnknownEvent, "the app no longer offers %s", w.Event)
	case endedBySchema:
		return schemaChanged(w.Event, detail)
	case endedFailing:
		return refusal.New(refusal.CallbackFailed, "nothing could be delivered for %d days", int(maxSuspended.Hours()/24)).WithReason(detail)
	case endedToolsOnly:
		return toolsOnly(w.Event)
	case endedRefused:
		return refusal.New(refusal.Forbidden, "the app does not allow %s with these arguments any more", w.Event).With("reason", "app")
	}
	return refusal.New(refusal.Forbidden, "the app ended the subscription").With("reason", "ended")
}

// endByApp ends a webhook in its app's name, and returns it if it was live.
func endByApp(tx store.Tx, w wake.Webhook) ([]wake.Webhook, error) {
	if !w.Live(now()) {
		return nil, nil // one that expired goes with the sweep
	}
	ended, err := tx.EndWebhook(w.ID, endedByApp, now())
	if err != nil || !ended {
		return nil, err
	}
	return []wake.Webhook{w}, nil
}

// endRefused ends the live webhook of a principal who may not have its event any more, and returns the refusal, or why it could
// not be ended.
func (c *Core) endRefused(ctx context.Context, app wake.App, m manifest, a access, url string, no error) error {
	if !refusal.Is(no, refusal.Forbidden) || a.event == nil || a.principal == "" {
		return no
	}
	id := webhookID(app.ID, a.principal, url, a.event.Name, string(a.arguments.Canonical))
	ends := func(r store.Reader) (bool, error) {
		w, err := r.Webhook(id)
		if errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		return err == nil && w.Live(now()), err
	}
	var live, ended bool
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		live, err = ends(r)
		return err
	})
	if err != nil || !live {
		return errors.Join(no, err)
	}
	err = c.store.Update(ctx, func(tx store.Tx) error {
		ended = false
		if err := m.current(tx, app.ID); err != nil {
			return err
		}
		if live, err := ends(tx); err != nil || !live {
			return err
		}
		ended, err = tx.EndWebhook(id, endedRefused, now())
		return err
	})
	if err != nil {
		return err
	}
	if ended {
		c.announceHookEnds(wake.Webhook{ID: id, App: app.ID, Event: a.event.Name})
	}
	return no
}

// announceHookEnds has the endpoints of webhooks told, after the transaction that ended them.
func (c *Core) announceHookEnds(ended ...wake.Webhook) {
	if len(ended) == 0 {
		return
	}
	c.hintScrub()
	c.hintDeliveries()
	for _, w := range ended {
		c.feed.Put(trace.Entry{Kind: trace.Ended, App: w.App, Event: w.Event, Topic: w.Topic, Subscription: w.ID, Path: "webhook"})
	}
}
