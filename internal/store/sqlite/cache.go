package sqlite

import (
	"container/list"

	"github.com/rouse-dev/rouse/internal/wake"
)

// How much the writer keeps at hand: of subscriptions and of webhooks each, and of apps.
var atHand = limits{topics: 8192, rows: 200_000}

const appsAtHand = 4096

// A topicCache holds the rows of the topics that were asked for last, an empty answer too. It belongs to the writer, which
// makes every change and so knows what to forget: it is exact. Not safe for concurrent use.
type topicCache[T any] struct {
	id      func(T) string
	most    limits
	topics  map[topicKey]*list.Element // of cached[T]
	recent  *list.List                 // the topic used last in front
	topicOf map[string]topicKey        // by the row's id
	rows    int
}

// limits bound a topicCache.
type limits struct{ topics, rows int }

type cached[T any] struct {
	key topicKey
	*ordered[T]
}

func newTopicCache[T any](most limits, id func(T) string) *topicCache[T] {
	return &topicCache[T]{
		id: id, most: most, topics: map[topicKey]*list.Element{}, recent: list.New(), topicOf: map[string]topicKey{},
	}
}

// get answers from the cache or else by load, whose answer it keeps.
func (c *topicCache[T]) get(key topicKey, load func(topicKey) (*ordered[T], error)) (*ordered[T], error) {
	if e, ok := c.topics[key]; ok {
		c.recent.MoveToFront(e)
		return e.Value.(cached[T]).ordered, nil
	}
	o, err := load(key)
	if err != nil || len(o.rows) > c.most.rows {
		return o, err
	}
	c.topics[key] = c.recent.PushFront(cached[T]{key, o})
	for _, row := range o.rows {
		c.topicOf[c.id(row)] = key
	}
	c.rows += len(o.rows)
	for c.rows > c.most.rows || len(c.topics) > c.most.topics {
		c.forget(c.recent.Back().Value.(cached[T]).key)
	}
	return o, nil
}

// takes reports whether a row that was just written can be added to a topic that is held: it is new, and after the others.
// If not, the topic is to be forgotten.
func (c *topicCache[T]) takes(key topicKey, id string, n int64) bool {
	e, held := c.topics[key]
	if _, known := c.topicOf[id]; known || !held || c.rows >= c.most.rows {
		return false
	}
	before := e.Value.(cached[T]).n
	return len(before) == 0 || n > before[len(before)-1]
}

// add puts a row that it takes at a topic's end, so that a topic with many subscribers is not read again for each one more.
// Who was given the rows before does not see it.
func (c *topicCache[T]) add(key topicKey, row T, n int64) {
	o := c.topics[key].Value.(cached[T]).ordered
	o.rows, o.n = append(o.rows, row), append(o.n, n)
	c.topicOf[c.id(row)] = key
	c.rows++
}

// forget drops the topic, whose rows changed.
func (c *topicCache[T]) forget(key topicKey) {
	e, ok := c.topics[key]
	if !ok {
		return
	}
	o := c.recent.Remove(e).(cached[T])
	delete(c.topics, key)
	for _, row := range o.rows {
		delete(c.topicOf, c.id(row))
	}
	c.rows -= len(o.rows)
}

// forgetRow drops the topic that holds the row with that id.
func (c *topicCache[T]) forgetRow(id string) {
	if key, ok := c.topicOf[id]; ok {
		c.forget(key)
	}
}

// A cache is what the writer has at hand so that an emit need not ask the database.
type cache struct {
	subscriptions *topicCache[wake.Subscription]
	webhooks      *topicCache[wake.Webhook]
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
		subscriptions: newTopicCache(atHand, func(s wake.Subscription) string { return s.ID }),
		webhooks:      newTopicCache(atHand, func(w wake.Webhook) string { return w.ID }),
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
