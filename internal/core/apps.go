package core

import (
	"context"
	"crypto/ed25519"
	"errors"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// CreateApp makes an app. An empty name is the id.
func (c *Core) CreateApp(ctx context.Context, id, name string) (wake.App, error) {
	if err := wake.CheckAppID(id); err != nil {
		return wake.App{}, err
	}
	if name == "" {
		name = id
	}
	if err := wake.CheckString("app name", name, 100); err != nil {
		return wake.App{}, err
	}
	app := wake.App{ID: id, Name: name, CreatedAt: now()}
	err := c.store.Update(ctx, func(tx store.Tx) error { return tx.CreateApp(app) })
	if errors.Is(err, store.ErrExists) {
		return wake.App{}, refusal.New(refusal.Exists, "app %s is there already", wake.Quote(id))
	}
	return app, fault(err)
}

// Apps lists the apps.
func (c *Core) Apps(ctx context.Context) (apps []wake.App, err error) {
	err = c.store.View(ctx, func(r store.Reader) (err error) {
		apps, err = r.Apps()
		return err
	})
	return apps, fault(err)
}

// DeleteApp removes an app with everything that is its.
func (c *Core) DeleteApp(ctx context.Context, id string) error {
	var ended []wake.Subscription
	err := c.store.Update(ctx, func(tx store.Tx) (err error) {
		if ended, err = tx.SubscriptionsOfApp(id); err != nil {
			return err
		}
		return tx.DeleteApp(id)
	})
	if errors.Is(err, store.ErrNotFound) {
		return refusal.New(refusal.UnknownApp, "there is no app %s", wake.Quote(id))
	}
	c.keys.forget()
	c.manifests.forget(id)
	if err == nil {
		c.bus.Hint(bus.Key{App: id, Topic: manifestTopic})
		c.announceEnds(ended)
	}
	return fault(err)
}

// CreateKey makes a key for an app and returns its private half, which is kept nowhere: it can be shown this once.
func (c *Core) CreateKey(ctx context.Context, app, name string) (wake.Key, credential.AppKey, error) {
	secret, err := credential.GenerateAppKey(nil)
	if err != nil {
		return wake.Key{}, credential.AppKey{}, err
	}
	key, err := c.AddKey(ctx, app, name, secret.PublicKey())
	return key, secret, err
}

// AddKey registers the public half of a key that was made elsewhere. An empty name is "default".
func (c *Core) AddKey(ctx context.Context, app, name string, public ed25519.PublicKey) (wake.Key, error) {
	if name == "" {
		name = "default"
	}
	if err := wake.CheckString("key name", name, 100); err != nil {
		return wake.Key{}, err
	}
	key := wake.Key{ID: credential.KeyID(public), App: app, Name: name, Public: public, CreatedAt: now()}
	err := c.store.Update(ctx, func(tx store.Tx) error {
		if _, err := tx.App(app); err != nil {
			return err
		}
		return tx.CreateKey(key)
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return wake.Key{}, refusal.New(refusal.UnknownApp, "there is no app %s", wake.Quote(app))
	case errors.Is(err, store.ErrExists):
		return wake.Key{}, refusal.New(refusal.Exists, "that key is registered already")
	}
	return key, fault(err)
}

// Keys lists an app's keys, revoked ones too.
func (c *Core) Keys(ctx context.Context, app string) (keys []wake.Key, err error) {
	err = c.store.View(ctx, func(r store.Reader) (err error) {
		if _, err := r.App(app); err != nil {
			return err
		}
		keys, err = r.Keys(app)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, refusal.New(refusal.UnknownApp, "there is no app %s", wake.Quote(app))
	}
	return keys, fault(err)
}

// RevokeKey ends a key: assertions signed with it are refused from now on.
func (c *Core) RevokeKey(ctx context.Context, app, id string) error {
	err := c.store.Update(ctx, func(tx store.Tx) error { return tx.RevokeKey(app, id, now()) })
	c.keys.forget()
	if errors.Is(err, store.ErrNotFound) {
		return refusal.New(refusal.UnknownKey, "app %s has no key %s", wake.Quote(app), wake.Quote(id))
	}
	return fault(err)
}

// Caller is an app that was let in, and the key it came with.
type Caller struct {
	App wake.App
	Key wake.Key
}

// Authenticate lets an app in by its assertion, which is used up by it.
func (c *Core) Authenticate(ctx context.Context, token string) (Caller, error) {
	var caller Caller
	assertion, err := c.assertions.Verify(token, func(id string) (ed25519.PublicKey, string, error) {
		var err error
		caller, err = c.caller(ctx, id)
		return caller.Key.Public, caller.App.ID, err
	}, c.audiences, now())
	if err != nil {
		if errors.Is(err, credential.ErrRefused) {
			return Caller{}, refusal.New(refusal.Unauthorized, "%s", err)
		}
		return Caller{}, fault(err)
	}
	fresh, err := c.store.Spend(ctx, "assertion/"+assertion.KeyID, assertion.JTI, assertion.Expires)
	if err != nil {
		return Caller{}, fault(err)
	}
	if !fresh {
		return Caller{}, refusal.New(refusal.Unauthorized, "the assertion was used before: sign a new one for each request")
	}
	return caller, nil
}

// StillIn refuses a caller that was let in a while ago and would not be let in now: its key was revoked, or its app deleted.
func (c *Core) StillIn(ctx context.Context, caller Caller) error {
	_, err := c.caller(ctx, caller.Key.ID)
	if errors.Is(err, credential.ErrUnknownKey) {
		return refusal.New(refusal.Unauthorized, "the key is not good any more")
	}
	return fault(err)
}

// keyTTL bounds how long another node's revocation may go unnoticed. Changes made by this core count at once.
const keyTTL = time.Second

// keyCache remembers who has which key, because every request asks.
type keyCache struct {
	mu      sync.Mutex
	callers map[string]cachedCaller
	// generation grows with each change, so that a look-up that began before it is not kept.
	generation int
}

type cachedCaller struct {
	caller Caller
	until  time.Time
}

func (k *keyCache) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.callers = nil
	k.generation++
}

// caller finds a key that is good, and its app. An unknown or revoked key is an error that an assertion is refused by.
func (c *Core) caller(ctx context.Context, keyID string) (Caller, error) {
	at := time.Now()
	c.keys.mu.Lock()
	known, ok := c.keys.callers[keyID]
	generation := c.keys.generation
	c.keys.mu.Unlock()
	if ok && at.Before(known.until) {
		return known.caller, nil
	}
	var found Caller
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		if found.Key, err = r.Key(keyID); err != nil {
			return err
		}
		found.App, err = r.App(found.Key.App)
		return err
	})
	if errors.Is(err, store.ErrNotFound) || err == nil && found.Key.Revoked() {
		return Caller{}, credential.ErrUnknownKey
	}
	if err != nil {
		return Caller{}, err
	}
	c.keys.mu.Lock()
	defer c.keys.mu.Unlock()
	if c.keys.generation == generation {
		if c.keys.callers == nil || len(c.keys.callers) >= 10_000 {
			c.keys.callers = map[string]cachedCaller{}
		}
		c.keys.callers[keyID] = cachedCaller{found, at.Add(keyTTL)}
	}
	return found, nil
}
