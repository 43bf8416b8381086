package postgres

import (
	"github.com/rouse-dev/rouse/internal/store/topiccache"
	"github.com/rouse-dev/rouse/internal/wake"
)

// How much a node keeps at hand: of subscriptions and of webhooks each, and of apps.
var atHand = topiccache.Limits{Topics: 8192, Rows: 200_000}

const appsAtHand = 4096

// A topicKey names a topic of an app.
type topicKey struct{ app, topic string }

// A cache is what a node has at hand so that an emit need not ask the database. It is exact as of the log's counter of
// changes, which tells of those that other nodes made.
type cache struct {
	subscriptions *topiccache.Cache[topicKey, wake.Subscription]
	webhooks      *topiccache.Cache[topicKey, wake.Webhook]
	apps          map[string]appState
}

// An appState is what each emit asks about an app.
type appState struct {
	exists          bool
	manifestVersion int64
}

// newCache gives an empty one: it is exact whatever happened before, a rollback for one.
func newCache() *cache {
	return &cache{
		subscriptions: topiccache.New[topicKey](atHand, func(s wake.Subscription) string { return s.ID }),
		webhooks:      topiccache.New[topicKey](atHand, func(w wake.Webhook) string { return w.ID }),
		apps:          map[string]appState{},
	}
}

// app answers from the cache or else by load, whose answer it keeps.
func (c *cache) app(id string, load func(string) (appState, error)) (appState, error) {
	if s, ok := c.apps[id]; ok {
		return s, nil
	}
	s, err := load(id)
	if err != nil {
		return s, err
	}
	if len(c.apps) >= appsAtHand {
		clear(c.apps)
	}
	c.apps[id] = s
	return s, nil
}
