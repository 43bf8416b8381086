package core

import (
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// PublishPath begins the path of publish URLs; the capability follows.
const PublishPath = "/p/"

// maxPublishURLs is how many an app may have that are not revoked.
const maxPublishURLs = 10_000

// EventPublishURL makes a URL that emits an event with these arguments; to is the one user of a personal event.
func (c *Core) EventPublishURL(ctx context.Context, app wake.App, name string, arguments json.RawMessage, to string) (wake.PublishURL, string, error) {
	var made wake.PublishURL
	err := c.withManifest(ctx, app.ID, func(m manifest) error {
		event, err := m.event(name)
		if err != nil {
			return err
		}
		bound, err := event.Bind(arguments)
		if err != nil {
			return err
		}
		if err := checkRecipient(event, to); err != nil {
			return err
		}
		made = wake.PublishURL{ID: credential.NewID(), App: app.ID, Event: name, Arguments: bound.Canonical, To: to, CreatedAt: now()}
		return c.keepPublishURL(ctx, made)
	})
	return made, c.publishURL(made), err
}

// TopicPublishURL makes a URL that publishes to a topic.
func (c *Core) TopicPublishURL(ctx context.Context, app wake.App, topic string) (wake.PublishURL, string, error) {
	if err := wake.CheckTopic(topic); err != nil {
		return wake.PublishURL{}, "", err
	}
	made := wake.PublishURL{ID: credential.NewID(), App: app.ID, Topic: topic, CreatedAt: now()}
	return made, c.publishURL(made), fault(c.keepPublishURL(ctx, made))
}

func (c *Core) publishURL(u wake.PublishURL) string {
	if u.ID == "" {
		return ""
	}
	return c.publicURL + PublishPath + c.master.Mint(credential.PublishURL, u.ID)
}

func (c *Core) keepPublishURL(ctx context.Context, u wake.PublishURL) error {
	return c.store.Update(ctx, func(tx store.Tx) error {
		count, err := tx.CountPublishURLs(u.App)
		if err != nil {
			return err
		}
		if count >= maxPublishURLs {
			return refusal.New(refusal.PublishURLLimit, "this app has %d publish URLs, the most allowed: revoke some", count)
		}
		return tx.PutPublishURL(u)
	})
}

// RevokePublishURL ends a publish URL of the app; revoking again changes nothing.
func (c *Core) RevokePublishURL(ctx context.Context, app wake.App, id string) error {
	unknown := refusal.New(refusal.UnknownPublishURL, "there is no publish URL %s", wake.Quote(id))
	if !wake.CouldBeID(id) {
		return unknown
	}
	err := c.store.Update(ctx, func(tx store.Tx) error {
		u, err := tx.PublishURL(id)
		if err != nil {
			return err
		}
		if u.App != app.ID {
			return store.ErrNotFound
		}
		if u.Revoked() {
			return nil
		}
		u.RevokedAt = now()
		return tx.PutPublishURL(u)
	})
	if errors.Is(err, store.ErrNotFound) {
		return unknown
	}
	return fault(err)
}

// A Post is what a service sent to a publish URL.
type Post struct {
	Object json.RawMessage // the body as a compact JSON object; nil when it is none
	Text   string          // the body as text, when it is no JSON object
	ID     string          // the sender's id of it, which makes a repeated post count once; may be empty
}

// PublishBy emits or publishes what was sent to the publish URL with that capability.
func (c *Core) PublishBy(ctx context.Context, token string, p Post) (Emitted, error) {
	unknown := refusal.New(refusal.UnknownPublishURL, "there is no publish URL with that address")
	id, ok := c.master.Open(credential.PublishURL, token)
	if !ok {
		return Emitted{}, unknown
	}
	var u wake.PublishURL
	var app wake.App
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		if u, err = r.PublishURL(id); err != nil {
			return err
		}
		app, err = r.App(u.App)
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Emitted{}, unknown
	case err != nil:
		return Emitted{}, fault(err)
	case u.Revoked():
		return Emitted{}, refusal.New(refusal.Gone, "this publish URL was revoked")
	}
	if err := c.AllowApp(app); err != nil {
		return Emitted{}, err
	}
	if u.Event != "" {
		return c.Emit(ctx, app, Emit{Name: u.Event, Arguments: u.Arguments, Payload: p.Object, ID: p.ID, To: u.To})
	}
	text := p.Text
	if p.Object != nil {
		text = harness.DefaultText(u.Topic, string(p.Object))
	}
	if text == "" || !utf8.ValidString(text) {
		return Emitted{}, refusal.New(refusal.BadRequest, "the body: must be a JSON object or text, and not empty")
	}
	return c.Publish(ctx, app, Publish{Topics: []string{u.Topic}, Text: text, Data: p.Object, ID: p.ID})
}
