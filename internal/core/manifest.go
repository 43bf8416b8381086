package core

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// manifest is an app's manifest, read and ready for use.
type manifest struct {
	version int64
	events  map[string]*wake.Event
}

// event finds one of its events.
func (m manifest) event(name string) (*wake.Event, error) {
	if e := m.events[name]; e != nil {
		return e, nil
	}
	return nil, refusal.New(refusal.UnknownEvent, "the app's manifest has no event %s", wake.Quote(name))
}

// manifestCache remembers manifests, since reading one compiles its schemas. What it holds may be old: whoever writes by it
// compares the version within the transaction.
type manifestCache struct {
	mu   sync.Mutex
	apps map[string]manifest
}

func (m *manifestCache) forget(app string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.apps, app)
}

func (m *manifestCache) get(app string) (manifest, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.apps[app]
	return found, ok
}

func (m *manifestCache) put(app string, one manifest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.apps == nil {
		m.apps = map[string]manifest{}
	}
	m.apps[app] = one
}

// errStale means that the manifest in use is not the app's any more.
var errStale = errors.New("the manifest was replaced meanwhile")

// current refuses, within a transaction, to go on with a manifest that was replaced.
func (m manifest) current(r store.Reader, app string) error {
	version, err := r.ManifestVersion(app)
	if err == nil && version != m.version {
		return errStale
	}
	return err
}

// withManifest calls f with the app's manifest, again with a newer one when f fails with errStale, or with a refusal that an
// old manifest may have caused.
func (c *Core) withManifest(ctx context.Context, app string, f func(manifest) error) error {
	for {
		m, err := c.manifest(ctx, app)
		if err != nil {
			return fault(err)
		}
		err = f(m)
		if refusal.Of(err) != nil {
			if stale := c.store.View(ctx, func(r store.Reader) error { return m.current(r, app) }); errors.Is(stale, errStale) {
				err = stale
			}
		}
		if !errors.Is(err, errStale) {
			return fault(err)
		}
		c.manifests.forget(app)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (c *Core) manifest(ctx context.Context, app string) (manifest, error) {
	if m, ok := c.manifests.get(app); ok {
		return m, nil
	}
	var kept store.Manifest
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		kept, err = r.Manifest(app)
		return err
	})
	if err != nil {
		return manifest{}, err
	}
	m := manifest{version: kept.Version}
	if kept.Body != nil {
		parsed, err := wake.ParseManifest(kept.Body)
		if err != nil {
			return manifest{}, err
		}
		m.events = parsed.Events
	}
	c.manifests.put(app, m)
	return m, nil
}

// PutManifest replaces what an app says it may emit, whole or not at all, and returns it as kept. Subscriptions to events that
// are gone, or changed so that they mean something else, end, and their conversations are told. A manifest that says nothing of
// events leaves those there are.
func (c *Core) PutManifest(ctx context.Context, app wake.App, body json.RawMessage) (json.RawMessage, error) {
	next, err := wake.ParseManifest(body)
	if err != nil {
		return nil, err
	}
	var ended []wake.Subscription
	var hooks []wake.Webhook
	err = c.store.Update(ctx, func(tx store.Tx) error {
		ended, hooks = nil, nil
		kept, err := tx.Manifest(app.ID)
		if err != nil {
			return err
		}
		before := &wake.Manifest{}
		if kept.Body != nil {
			if before, err = wake.ParseManifest(kept.Body); err != nil {
				return err
			}
		}
		put := body
		if next.Events == nil {
			if put, err = withEvents(body, kept.Body); err != nil {
				return err
			}
		} else if ended, hooks, err = endBroken(tx, app, before, next); err != nil {
			return err
		}
		body = put
		_, err = tx.PutManifest(app.ID, put)
		return err
	})
	if err != nil {
		return nil, fault(err)
	}
	c.manifests.forget(app.ID)
	c.bus.Hint(bus.Key{App: app.ID, Topic: manifestTopic})
	c.announceEnds(ended)
	c.announceHookEnds(hooks...)
	return body, nil
}

// withEvents is the body with the events of a former one.
func withEvents(body, former json.RawMessage) (json.RawMessage, error) {
	var fields, old map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	if former == nil {
		return body, nil
	}
	if err := json.Unmarshal(former, &old); err != nil {
		return nil, err
	}
	if events, ok := old["events"]; ok {
		fields["events"] = events
	}
	return json.Marshal(fields)
}

// endBroken ends what cannot go on under the next manifest, and returns the subscriptions and webhooks that it ended.
func endBroken(tx store.Tx, app wake.App, before, next *wake.Manifest) (ended []wake.Subscription, hooks []wake.Webhook, err error) {
	for name, was := range before.Events {
		reason, word := "the app "+app.Name+" no longer offers it", endedWithEvent
		whose := func(wake.Webhook) bool { return true }
		if is := next.Events[name]; is != nil {
			if reason = was.Breaks(is); reason != "" {
				word = endedBySchema + "/" + brokenSchema(was, is)
			} else if is.OpenTo("somebody") || !was.OpenTo("somebody") {
				continue
			} else { // who came by a tool's voucher may have it still
				word, whose = endedToolsOnly, func(w wake.Webhook) bool { return w.Principal == wake.UserPrincipal(w.User) }
			}
		}
		if reason != "" {
			subs, err := tx.SubscriptionsOfEvent(app.ID, name)
			if err != nil {
				return nil, nil, err
			}
			if err := endAndTell(tx, subs, harness.EndedText(name, reason)); err != nil {
				return nil, nil, err
			}
			ended = append(ended, subs...)
		}
		of, err := endHooks(tx, app.ID, name, word, whose)
		if err != nil {
			return nil, nil, err
		}
		hooks = append(hooks, of...)
	}
	return ended, hooks, nil
}

// endHooks ends the live webhooks of an event that are so, and returns them.
func endHooks(tx store.Tx, app, event, word string, so func(wake.Webhook) bool) (ended []wake.Webhook, err error) {
	all, err := tx.WebhooksOfEvent(app, event)
	if err != nil {
		return nil, err
	}
	for _, w := range all {
		if !w.Live(now()) || !so(w) {
			continue // one that expired goes with the sweep
		}
		if _, err := tx.EndWebhook(w.ID, word, now()); err != nil {
			return nil, err
		}
		ended = append(ended, w)
	}
	return ended, nil
}
