package topiccache

import "container/list"

// A Cache holds the rows of the topics that were asked for last, an empty answer too. K names a topic, T is a row. It is
// exact as long as whoever makes changes says so. Not safe for concurrent use.
type Cache[K comparable, T any] struct {
	id      func(T) string
	most    Limits
	topics  map[K]*list.Element // of cached[K, T]
	recent  *list.List          // the topic used last in front
	topicOf map[string]K        // by the row's id
	rows    int
}

// Limits are how many topics and how many rows a Cache holds at most. Those used longest ago go first; a topic with more
// rows is not held at all.
type Limits struct{ Topics, Rows int }

type cached[K comparable, T any] struct {
	key K
	*Rows[T]
}

// New gives an empty Cache of rows with those ids.
func New[K comparable, T any](most Limits, id func(T) string) *Cache[K, T] {
	return &Cache[K, T]{
		id: id, most: most, topics: map[K]*list.Element{}, recent: list.New(), topicOf: map[string]K{},
	}
}

// Get answers from the cache or else by load, whose answer it keeps.
func (c *Cache[K, T]) Get(key K, load func(K) (*Rows[T], error)) (*Rows[T], error) {
	if e, ok := c.topics[key]; ok {
		c.recent.MoveToFront(e)
		return e.Value.(cached[K, T]).Rows, nil
	}
	o, err := load(key)
	if err != nil || len(o.List) > c.most.Rows {
		return o, err
	}
	c.topics[key] = c.recent.PushFront(cached[K, T]{key, o})
	for _, row := range o.List {
		c.topicOf[c.id(row)] = key
	}
	c.rows += len(o.List)
	for c.rows > c.most.Rows || len(c.topics) > c.most.Topics {
		c.Forget(c.recent.Back().Value.(cached[K, T]).key)
	}
	return o, nil
}

// Holds reports whether the topic's rows are at hand.
func (c *Cache[K, T]) Holds(key K) bool {
	_, ok := c.topics[key]
	return ok
}

// Takes reports whether a row that was just written can be added to a topic that is held: it is new, and after the others.
// If not, the topic is to be forgotten.
func (c *Cache[K, T]) Takes(key K, id string, n int64) bool {
	e, held := c.topics[key]
	if _, known := c.topicOf[id]; known || !held || c.rows >= c.most.Rows {
		return false
	}
	before := e.Value.(cached[K, T]).N
	return len(before) == 0 || n > before[len(before)-1]
}

// Add puts a row that it takes at a topic's end, so that a topic with many subscribers is not read again for each one more.
// Who was given the rows before does not see it.
func (c *Cache[K, T]) Add(key K, row T, n int64) {
	o := c.topics[key].Value.(cached[K, T]).Rows
	o.List, o.N = append(o.List, row), append(o.N, n)
	c.topicOf[c.id(row)] = key
	c.rows++
}

// Forget drops the topic, whose rows changed.
func (c *Cache[K, T]) Forget(key K) {
	e, ok := c.topics[key]
	if !ok {
		return
	}
	o := c.recent.Remove(e).(cached[K, T])
	delete(c.topics, key)
	for _, row := range o.List {
		delete(c.topicOf, c.id(row))
	}
	c.rows -= len(o.List)
}

// ForgetRow drops the topic that holds the row with that id.
func (c *Cache[K, T]) ForgetRow(id string) {
	if key, ok := c.topicOf[id]; ok {
		c.Forget(key)
	}
}
