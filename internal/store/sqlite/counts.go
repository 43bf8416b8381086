package sqlite

import (
	"context"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

// sizeQuery is the room of the pages in use; sqlc does not know pragmas.
const sizeQuery = "SELECT (p.page_count - f.freelist_count) * s.page_size FROM pragma_page_count AS p, pragma_freelist_count AS f, pragma_page_size AS s"

// Size implements [store.Store].
func (s *Store) Size(ctx context.Context) (bytes int64, err error) {
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	err = s.reads.QueryRowContext(ctx, sizeQuery).Scan(&bytes)
	return bytes, fault(err)
}

func (r *reader) CountSubscriptionsOfUser(app, user string) (int, error) {
	n, err := r.q.CountSubscriptionsOfUser(background, queries.CountSubscriptionsOfUserParams{App: app, UserID: user})
	return int(n), r.fault(err)
}

func (r *reader) CountSubscriptionsOfApp(app string) (int, error) {
	n, err := r.q.CountSubscriptionsOfApp(background, app)
	return int(n), r.fault(err)
}

func (r *reader) CountConversations(app string) (int, error) {
	n, err := r.q.CountConversations(background, app)
	return int(n), r.fault(err)
}

func (r *reader) SubscriptionsBehind(app, topic string, seq wake.Seq, limit int) ([]wake.Subscription, error) {
	rows, err := r.q.SubscriptionsBehind(background, queries.SubscriptionsBehindParams{
		App: app, Topic: topic, Looked: store.MostListed, Seq: int64(seq), Max: atLeastZero(limit),
	})
	return convert(rows, r.fault(err), toSubscription)
}

// OldestOccurrences looks at the times alone first: most often none is old, and then no payload need be read.
func (r *reader) OldestOccurrences(before time.Time, limit int) ([]wake.Occurrence, error) {
	oldest, err := r.q.OldestOccurrences(background, atLeastZero(limit))
	if err != nil {
		return nil, r.fault(err)
	}
	through := int64(0)
	for _, row := range oldest {
		if row.At >= micros(before) {
			break
		}
		through = row.Seq
	}
	if through == 0 {
		return nil, nil
	}
	rows, err := r.q.OccurrencesThrough(background, through)
	return convert(rows, r.fault(err), sure(toOccurrence))
}

func (t *tx) OldestOccurrences(before time.Time, limit int) ([]wake.Occurrence, error) {
	if err := t.w.flush(); err != nil {
		return nil, err
	}
	return t.reader.OldestOccurrences(before, limit)
}
