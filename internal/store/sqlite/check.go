package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite/internal/queries"
	"github.com/rouse-dev/rouse/internal/wake"
)

// rules are what must hold of the rows, beyond what the tables' own constraints say: each query counts the rows that break one.
var rules = []struct{ table, what, query string }{
	{"log", "states with places after the head",
		"SELECT count(*) FROM log WHERE horizon > head OR indexed > head"},
	{"occurrences", "lie after the log's head",
		"SELECT count(*) FROM occurrences WHERE seq > (SELECT head FROM log)"},
	{"occurrences", "belong to no app",
		"SELECT count(*) FROM occurrences WHERE app NOT IN (SELECT id FROM apps)"},
	{"topic_places", "belong to no app",
		"SELECT count(*) FROM topic_places WHERE app NOT IN (SELECT id FROM apps)"},
	{"manifests", "have a version that was not given out",
		"SELECT count(*) FROM manifests WHERE version > (SELECT manifests FROM log)"},
	{"conversations", "are beyond the log's head",
		"SELECT count(*) FROM conversations WHERE position > (SELECT head FROM log)"},
	{"subscriptions", "begin or end beyond the log's head",
		"SELECT count(*) FROM subscriptions WHERE max(from_seq, until_seq) > (SELECT head FROM log)"},
	{"subscriptions", "are live and have an end",
		"SELECT count(*) FROM subscriptions WHERE ended_at = 0 AND until_seq <> 0"},
	{"subscriptions", "are of another app than their conversation",
		"SELECT count(*) FROM subscriptions JOIN conversations ON conversations.id = conversation WHERE subscriptions.app <> conversations.app"},
	{"deliveries", "are of places that hold nothing",
		"SELECT count(*) FROM deliveries WHERE kind = '' AND seq NOT IN (SELECT seq FROM occurrences)"},
	{"webhooks", "are due without a delivery, or the other way round",
		"SELECT count(*) FROM webhooks WHERE (due_at IS NULL) = EXISTS (SELECT 1 FROM deliveries WHERE webhook = webhooks.id)"},
	// Which one's depends on the claims there were: see RefreshClaimed.
	{"webhooks", "are due at another time than any of their deliveries",
		"SELECT count(*) FROM webhooks WHERE due_at IS NOT NULL AND due_at NOT IN (SELECT next_at FROM deliveries WHERE webhook = webhooks.id)"},
	{"owed", "are of places that hold nothing",
		"SELECT count(*) FROM owed WHERE seq NOT IN (SELECT seq FROM occurrences)"},
	{"owed", "are of content that was erased",
		"SELECT count(*) FROM owed JOIN occurrences USING (seq) WHERE kind = 'erased'"},
	{"owed", "are held by nobody",
		"SELECT count(*) FROM owed WHERE holder NOT IN (SELECT id FROM subscriptions) AND holder NOT IN (SELECT id FROM webhooks)"},
}

// Check implements [store.Store]. The write-ahead log grows while it reads.
func (s *Store) Check(ctx context.Context) ([]store.Problem, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return check(ctx, s.reads)
}

func check(ctx context.Context, db *sql.DB) (problems []store.Problem, err error) {
	snapshot, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fault(err)
	}
	defer func() { err = errors.Join(err, snapshot.Rollback()) }()
	for _, look := range []func(context.Context, *sql.Tx) ([]store.Problem, error){checkFile, checkReferences, checkRules, checkIndex} {
		found, err := look(ctx, snapshot)
		if problems = append(problems, found...); errors.Is(fault(err), store.ErrCorrupt) {
			// So damaged that this cannot be read: that is what was asked.
			problems = append(problems, store.Problem{Where: "file", What: err.Error()})
			break
		}
		if err != nil {
			return nil, fault(err)
		}
	}
	return problems[:min(len(problems), store.MaxProblems)], nil
}

// checkFile has SQLite look at its own structures.
func checkFile(ctx context.Context, tx *sql.Tx) (problems []store.Problem, err error) {
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("PRAGMA integrity_check(%d)", store.MaxProblems))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var what string
		if err := rows.Scan(&what); err != nil {
			return nil, err
		}
		if what != "ok" {
			problems = append(problems, store.Problem{Where: "file", What: what})
		}
	}
	return problems, rows.Err()
}

func checkReferences(ctx context.Context, tx *sql.Tx) (problems []store.Problem, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT "table", parent, count(*) FROM pragma_foreign_key_check GROUP BY "table", parent`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var table, parent string
		var count int
		if err := rows.Scan(&table, &parent, &count); err != nil {
			return nil, err
		}
		problems = append(problems, store.Problem{Where: table, What: fmt.Sprintf("%d refer to %s that are not there", count, parent)})
	}
	return problems, rows.Err()
}

func checkRules(ctx context.Context, tx *sql.Tx) (problems []store.Problem, err error) {
	for _, rule := range rules {
		var count int
		if err := tx.QueryRowContext(ctx, rule.query).Scan(&count); err != nil {
			return nil, err
		}
		if count > 0 {
			problems = append(problems, store.Problem{Where: rule.table, What: fmt.Sprintf("%d %s", count, rule.what)})
		}
	}
	return problems, nil
}

// checkIndex compares the topic index with the log, as far as it should be complete. Both are read once, in orders of their
// own, so it is sums that are compared.
func checkIndex(ctx context.Context, tx *sql.Tx) ([]store.Problem, error) {
	q := queries.New(tx)
	state, err := q.Log(ctx)
	if err != nil {
		return nil, err
	}
	log, index := placeSum{seed: maphash.MakeSeed()}, placeSum{}
	index.seed = log.seed
	err = eachTopics(q, wake.Seq(state.Horizon), wake.Seq(state.Indexed), func(row queries.TopicsBetweenRow) bool {
		for _, topic := range splitTopics(row.Topics) {
			log.add(topicKey{row.App, topic}, wake.Seq(row.Seq))
		}
		return ctx.Err() == nil
	})
	if err == nil {
		err = eachRun(ctx, tx, func(r run) {
			for _, place := range between(r.places, wake.Seq(state.Horizon), wake.Seq(state.Indexed)) {
				index.add(r.topicKey, place)
			}
		})
	}
	if err != nil || log == index {
		return nil, errors.Join(err, ctx.Err())
	}
	what := fmt.Sprintf("name %d places of which the log has %d on those topics, or others", index.count, log.count)
	return []store.Problem{{Where: "topic_places", What: what}}, nil
}

// eachRun walks the topic index.
func eachRun(ctx context.Context, tx *sql.Tx, f func(run)) error {
	rows, err := tx.QueryContext(ctx, "SELECT app, topic, last, earlier FROM topic_places")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r run
		var last int64
		var earlier []byte
		if err := rows.Scan(&r.app, &r.topic, &last, &earlier); err != nil {
			return err
		}
		if r.places, err = placesOf(wake.Seq(last), earlier); err != nil {
			return err
		}
		f(r)
	}
	return rows.Err()
}

// A placeSum stands for a set of places on topics, in whatever order they are added.
type placeSum struct {
	seed  maphash.Seed
	count int
	sum   uint64
}

func (p *placeSum) add(on topicKey, place wake.Seq) {
	p.count++
	p.sum += maphash.Comparable(p.seed, struct {
		topicKey
		wake.Seq
	}{on, place})
}
