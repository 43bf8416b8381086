package postgres

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/jackc/pgx/v5"

	"github.com/rouse-dev/rouse/internal/store"
)

// rules are what must hold of the rows, beyond what the tables' own constraints say: each query counts the rows that break one.
var rules = []struct{ table, what, query string }{
	{"log", "states with places after the head",
		"SELECT count(*) FROM log WHERE horizon > head"},
	{"occurrences", "lie after the log's head",
		"SELECT count(*) FROM occurrences WHERE seq > (SELECT head FROM log)"},
	{"occurrences", "belong to no app",
		"SELECT count(*) FROM occurrences WHERE NOT EXISTS (SELECT 1 FROM apps WHERE id = app)"},
	{"manifests", "have a version that was not given out",
		"SELECT count(*) FROM manifests WHERE version > (SELECT manifests FROM log)"},
	{"conversations", "are beyond the log's head",
		"SELECT count(*) FROM conversations WHERE position > (SELECT head FROM log)"},
	{"subscriptions", "begin or end beyond the log's head",
		"SELECT count(*) FROM subscriptions WHERE greatest(from_seq, until_seq) > (SELECT head FROM log)"},
	{"subscriptions", "are live and have an end",
		"SELECT count(*) FROM subscriptions WHERE ended_at = 0 AND until_seq <> 0"},
	{"subscriptions", "are of another app than their conversation",
		"SELECT count(*) FROM subscriptions AS s JOIN conversations AS c ON c.id = s.conversation WHERE s.app <> c.app"},
	{"deliveries", "are of places that hold nothing",
		"SELECT count(*) FROM deliveries AS d WHERE kind = '' AND NOT EXISTS (SELECT 1 FROM occurrences AS o WHERE o.seq = d.seq)"},
	{"webhooks", "are due without a delivery, or the other way round",
		"SELECT count(*) FROM webhooks AS w WHERE (due_at IS NULL) = EXISTS (SELECT 1 FROM deliveries WHERE webhook = w.id)"},
	// Which one's depends on the claims there were: see RefreshClaimed.
	{"webhooks", "are due at another time than any of their deliveries",
		"SELECT count(*) FROM webhooks AS w WHERE NOT EXISTS (SELECT 1 FROM deliveries WHERE webhook = w.id AND next_at = due_at) AND due_at IS NOT NULL"},
	{"owed", "are of places that hold nothing",
		"SELECT count(*) FROM owed WHERE NOT EXISTS (SELECT 1 FROM occurrences AS o WHERE o.seq = owed.seq)"},
	{"owed", "are of content that was erased",
		"SELECT count(*) FROM owed JOIN occurrences AS o ON o.seq = owed.seq WHERE o.kind = 'erased'"},
	{"owed", "are held by nobody",
		"SELECT count(*) FROM owed WHERE NOT EXISTS (SELECT 1 FROM subscriptions WHERE id = holder) AND NOT EXISTS (SELECT 1 FROM webhooks WHERE id = holder)"},
}

// Check implements [store.Store]. Of the server's own files it sees what reading everything shows.
func (s *Store) Check(ctx context.Context) ([]store.Problem, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	conn, err := s.views.Acquire(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	defer conn.Release()
	snapshot, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, fault(conn.Conn(), err)
	}
	defer rollback(conn.Conn())
	problems, err := checkRules(ctx, snapshot)
	if err == nil {
		var more []store.Problem
		more, err = checkIndex(ctx, snapshot)
		problems = append(problems, more...)
	}
	return problems, fault(conn.Conn(), err)
}

func checkRules(ctx context.Context, tx pgx.Tx) (problems []store.Problem, err error) {
	for _, rule := range rules {
		var count int
		if err := tx.QueryRow(ctx, rule.query).Scan(&count); err != nil {
			return nil, err
		}
		if count > 0 {
			problems = append(problems, store.Problem{Where: rule.table, What: fmt.Sprintf("%d %s", count, rule.what)})
		}
	}
	return problems, nil
}

// checkIndex compares where topics are said to be with the log. Both are read once, in orders of their own, so it is sums that
// are compared.
func checkIndex(ctx context.Context, tx pgx.Tx) ([]store.Problem, error) {
	log, index := placeSum{seed: maphash.MakeSeed()}, placeSum{}
	index.seed = log.seed
	err := eachRow(ctx, tx, "SELECT app, topics, seq FROM occurrences", func(app string, topics []byte, seq int64) {
		on := map[string]bool{}
		for _, topic := range splitTopics(topics) {
			if !on[topic] {
				log.add(topicKey{app, topic}, seq)
			}
			on[topic] = true
		}
	})
	if err == nil {
		err = eachRow(ctx, tx, "SELECT app, topic, seq FROM topic_places", func(app string, topic []byte, seq int64) {
			index.add(topicKey{app, string(topic)}, seq)
		})
	}
	if err != nil || log == index {
		return nil, err
	}
	what := fmt.Sprintf("name %d places of which the log has %d on those topics, or others", index.count, log.count)
	return []store.Problem{{Where: "topic_places", What: what}}, nil
}

func eachRow(ctx context.Context, tx pgx.Tx, query string, f func(app string, topics []byte, seq int64)) error {
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var app string
		var topics []byte
		var seq int64
		if err := rows.Scan(&app, &topics, &seq); err != nil {
			return err
		}
		f(app, topics, seq)
	}
	return rows.Err()
}

// A placeSum stands for a set of places on topics, in whatever order they are added.
type placeSum struct {
	seed  maphash.Seed
	count int
	sum   uint64
}

func (p *placeSum) add(on topicKey, place int64) {
	p.count++
	p.sum += maphash.Comparable(p.seed, struct {
		topicKey
		int64
	}{on, place})
}
