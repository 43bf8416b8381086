package postgres

import (
	"context"

	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A Follower looks at the log for what has come, from whatever node, so that nobody depends on hints alone. It is for one
// goroutine.
type Follower struct {
	store *Store
	seen  queries.MarkRow
}

// How many places, and how many subscriptions, a Follower lists at most.
const (
	followedAtOnce   = 10_000
	subscribedAtOnce = 1000
)

// Follow gives a Follower of what comes from now on.
func (s *Store) Follow(ctx context.Context) (*Follower, error) {
	f := &Follower{store: s}
	var err error
	f.seen, err = f.mark(ctx)
	return f, err
}

// Channel is the name under which the nodes of this log can send each other messages.
func (s *Store) Channel(ctx context.Context) (string, error) {
	var channel string
	err := s.View(ctx, func(r store.Reader) error {
		log, err := r.Log()
		channel = "rouse_" + log.Epoch
		return err
	})
	return channel, err
}

func (f *Follower) mark(ctx context.Context) (m queries.MarkRow, err error) {
	if err := f.store.ready(ctx); err != nil {
		return m, err
	}
	conn, err := f.store.aside.Acquire(ctx)
	if err != nil {
		return m, unavailable(err)
	}
	defer conn.Release()
	m, err = queries.New(conn).Mark(ctx)
	return m, fault(conn.Conn(), err)
}

// Look gives the topics on which something was written since the last Look, and those of conversations with new
// subscriptions, or as all that there are too many to list.
func (f *Follower) Look(ctx context.Context) (keys []bus.Key, all bool, err error) {
	now, err := f.mark(ctx)
	if err != nil || now == f.seen {
		return nil, false, err
	}
	before := f.seen
	f.seen = now
	if now.Head-before.Head > followedAtOnce || now.Head < before.Head || now.Subscribed-before.Subscribed > subscribedAtOnce {
		return nil, true, nil
	}
	keys, err = f.list(ctx, before, now)
	if err != nil {
		f.seen = before
	}
	return keys, false, err
}

// list gives the keys of what lies between two marks.
func (f *Follower) list(ctx context.Context, after, through queries.MarkRow) (keys []bus.Key, err error) {
	conn, err := f.store.aside.Acquire(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	defer conn.Release()
	q := queries.New(conn)
	listed := map[bus.Key]bool{}
	add := func(app, topic string) {
		if key := (bus.Key{App: app, Topic: topic}); !listed[key] {
			listed[key] = true
			keys = append(keys, key)
		}
	}
	written, err := q.TopicsBetween(ctx, queries.TopicsBetweenParams{After: after.Head, Through: through.Head, Max: followedAtOnce})
	if err != nil {
		return nil, fault(conn.Conn(), err)
	}
	for _, row := range written {
		for _, topic := range splitTopics(row.Topics) {
			add(row.App, topic)
		}
	}
	subscribed, err := q.SubscribedBetween(ctx, queries.SubscribedBetweenParams{
		After: after.Subscribed, Through: through.Subscribed, Max: subscribedAtOnce,
	})
	for _, row := range subscribed {
		add(row.App, wake.ConversationTopic(row.Conversation))
	}
	return keys, fault(conn.Conn(), err)
}
