package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
)

// Who is on a topic is found by the index of topics, also in a table that grew before the planner has seen anything of it.
func TestTopicsAreFoundWithOldStatistics(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	open(t, address) // which makes the tables
	conn := pgtest.Connect(t, address)
	exec := func(statement string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	exec("ALTER TABLE subscriptions SET (autovacuum_enabled = false)")
	exec("ALTER TABLE webhooks SET (autovacuum_enabled = false)")
	exec("SET session_replication_role = replica") // there are no conversations
	exec(`INSERT INTO subscriptions (id, app, conversation, user_id, topic, event, once, claimed, from_seq, until_seq, created_at, expires_at, ended_at)
		SELECT 'x' || g, 'app', 'c' || g, '', ('ev/job.done/j' || g)::bytea, 'job.done', false, false, 0, 0, 0, 9, 0 FROM generate_series(1, 20000) g`)
	exec(`INSERT INTO webhooks (id, app, principal, user_id, url, host, event, topic, dialect, from_seq, created_at, expires_at, secret, former_until, suspended)
		SELECT 'w' || g, 'app', 'user/ada', 'ada', '', '', 'job.done', ('ev/job.done/j' || g)::bytea, 'draft', 0, 0, 9, '', 0, false FROM generate_series(1, 20000) g`)
	exec("SET enable_seqscan = off") // as the store has it
	exec("SET plan_cache_mode = force_generic_plan")
	for index, query := range map[string]string{
		"subscriptions_to_topic": "SELECT * FROM subscriptions WHERE app = $1 AND topic = ANY($2::bytea[]) AND ended_at = 0 LIMIT $3",
		"webhooks_to_topic":      "SELECT * FROM webhooks WHERE app = $1 AND topic = ANY($2::bytea[]) AND ended_at = 0 ORDER BY n LIMIT $3",
	} {
		name := "of_" + index
		exec("PREPARE " + name + " (text, bytea[], int) AS " + query)
		rows, err := conn.Query(t.Context(), "EXPLAIN EXECUTE "+name+` ('app', ARRAY['ev/job.done/j1'::bytea], 1000)`)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(plan, "\n"); !strings.Contains(text, " "+index+" ") && !strings.Contains(text, " "+index+"\n") {
			t.Errorf("%s is not used:\n%s", index, text)
		}
	}
}
