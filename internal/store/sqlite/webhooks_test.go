package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
	"github.com/rouse-dev/rouse/internal/wake"
)

// before makes a database as it was at an earlier schema, with these rows.
func before(t *testing.T, version int64, rows ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "rouse.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	for _, row := range append(rows, "PRAGMA application_id = 1383036275") {
		if _, err := db.ExecContext(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// Webhooks and what is queued for them outlive the schema that gave them hosts, health and notices.
func TestWebhooksOfAnEarlierSchema(t *testing.T) {
	t.Parallel()
	path := before(t, 8,
		"INSERT INTO log VALUES (1, 'abcd', 2, 0, 0, 0)",
		"INSERT INTO apps VALUES (1, 'app', 'App', 1)",
		"INSERT INTO occurrences VALUES (1, 'app', 'event', 'e', 'topic', NULL, '', NULL, NULL, NULL, 1, 1)",
		"INSERT INTO occurrences VALUES (2, 'app', 'event', 'e', 'topic', NULL, '', NULL, NULL, NULL, 1, 1)",
		"INSERT INTO webhooks VALUES (1, 'w', 'app', 'user/ada', 'ada', 'https://example.com/', 'e', NULL, 'topic', NULL, 'draft', 0, 5, 9000000, "+
			"x'00', NULL, 0, 7000000, 'timeout', 8000000, 0, 3000000)",
		"INSERT INTO webhooks VALUES (2, 'new', 'app', 'user/ada', 'ada', 'https://example.com/', 'e', NULL, 'topic', NULL, 'draft', 0, 5, 9000000, "+
			"x'00', NULL, 0, 0, '', 0, 1, NULL)",
		"INSERT INTO deliveries (webhook, seq, attempts, next_at, error, claim, leased) VALUES ('w', 1, 2, 3000000, 'timeout', 4, 0), ('w', 2, 0, 4000000, '', 1, 1)",
	)
	s := open(t, path)
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Fatalf("%v, %v", problems, err)
	}
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
	hook := wake.Webhook{ID: "w", App: "app", Principal: "user/ada", User: "ada", URL: "https://example.com/", Event: "e", Topic: "topic",
		Dialect: "draft", CreatedAt: time.UnixMicro(5).UTC(), ExpiresAt: at(9), Secret: []byte{0}}
	another := hook
	another.ID, another.Suspended = "new", true
	view(t, s, func(r store.Reader) {
		hooks, err := r.WebhooksOfApp("app")
		if diff := cmp.Diff([]wake.Webhook{hook, another}, hooks); err != nil || diff != "" {
			t.Errorf("webhooks: %v (-want +got):\n%s", err, diff)
		}
		for _, want := range []wake.Health{{Webhook: "w", LastDeliveryAt: at(7), LastError: "timeout", FailedSince: at(8)}, {Webhook: "new"}} {
			if h, err := r.Health(want.Webhook); err != nil || h != want {
				t.Errorf("health %+v, %v; want %+v", h, err, want)
			}
		}
	})
	update(t, s, func(tx store.Tx) error {
		claimed, err := tx.ClaimDeliveries(store.ClaimQuery{Now: at(5), Lease: at(50), Limit: 10, PerWebhook: 10})
		want := []wake.Delivery{
			{Webhook: "w", Seq: 1, Attempts: 2, NextAt: at(50), Error: "timeout", Claim: 5, Watermark: 1},
			{Webhook: "w", Seq: 2, NextAt: at(50), Claim: 2, Watermark: 0},
		}
		if diff := cmp.Diff(want, claimed); diff != "" {
			t.Errorf("claimed (-want +got):\n%s", diff)
		}
		return err
	})
}

// Of more attempts than are kept the first go, however young.
func TestSurplusAttempts(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	at := time.Now()
	update(t, s, func(tx store.Tx) error {
		if err := tx.PutWebhook(wake.Webhook{ID: "w", App: "app", Topic: "topic"}); err != nil {
			return err
		}
		for i := range 4 {
			if err := tx.RecordAttempt(wake.Attempt{Webhook: "w", Number: i, At: at, Outcome: wake.AttemptDelivered}); err != nil {
				return err
			}
		}
		// As if there were as many as may be between the second and the third.
		return sqlite.Exec(tx, fmt.Sprintf("UPDATE attempts SET n = n + %d WHERE n > 2", store.MostAttempts-2))
	})
	for more := true; more; {
		update(t, s, func(tx store.Tx) (err error) {
			more, err = tx.Prune(at.Add(-time.Hour), 1)
			return err
		})
	}
	view(t, s, func(r store.Reader) {
		left, err := r.Attempts(store.AttemptQuery{App: "app", Limit: 10})
		if err != nil || len(left) != 2 || left[1].Number != 2 {
			t.Errorf("left are %+v, %v; want the last two", left, err)
		}
	})
}

// What looks for work, and what lists attempts, reads no more than it answers: it goes by an index.
func TestPlans(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rouse.db")
	fill(t, path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for name, index := range map[string]string{
		"NextDue": "webhooks_by_due", "DueWebhooks": "webhooks_by_due", "DueDeliveries": "deliveries_by_due",
		"LeasedDeliveries": "deliveries_leased", "WebhooksEndedBefore": "webhooks_by_end", "IdleWebhooksExpiredBefore": "webhooks_by_expiry",
		"DeleteDeliveriesOf": "deliveries_of_place", "AttemptsOfApp": "attempts_of_app", "FailuresOfApp": "attempts_failed",
		"AttemptsOfWebhook": "attempts_of_webhook", "AttemptsAt": "attempts_of_place", "DropFirstAttempts": "attempts_of_webhook", "VerifiedAt": "webhooks_of_principal",
		"LowestQueued": "PRIMARY KEY", "ClaimDelivery": "PRIMARY KEY",
	} {
		plan := explain(t, db, name)
		if !strings.Contains(plan, index) || strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "SCAN deliveries") || strings.Contains(plan, "SCAN attempts") {
			t.Errorf("%s, which is to go by %s:\n%s", name, index, plan)
		}
	}
}

// parameter is one of a statement in queries.sql.
var parameter = regexp.MustCompile(`@[a-z_]+`)

// explain gives the plan of a statement in queries.sql.
func explain(t *testing.T, db *sql.DB, name string) string {
	t.Helper()
	file, err := os.ReadFile("queries.sql")
	if err != nil {
		t.Fatal(err)
	}
	_, statement, found := strings.Cut(string(file), "-- name: "+name+" ")
	_, statement, _ = strings.Cut(statement, "\n")
	statement, _, _ = strings.Cut(statement, ";")
	if !found {
		t.Fatalf("no statement %s", name)
	}
	statement = parameter.ReplaceAllString(statement, "'1'")
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+strings.ReplaceAll(statement, "?", "'1'"))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}

// fillQueue makes webhooks with deliveries that are due; one in a hundred is at a host of its own kind.
func fillQueue(b *testing.B, s store.Store, hooks, each int) {
	b.Helper()
	at := time.Now()
	var places []wake.Seq
	err := s.Update(b.Context(), func(t store.Tx) error {
		places = nil
		for range each {
			seq, err := t.Append(wake.Occurrence{App: "bench", Topics: []string{"topic"}, At: at})
			if err != nil {
				return err
			}
			places = append(places, seq)
		}
		return nil
	})
	for first := 0; first < hooks && err == nil; first += 1000 {
		err = s.Update(b.Context(), func(t store.Tx) error {
			for i := first; i < min(first+1000, hooks); i++ {
				w := wake.Webhook{ID: fmt.Sprint("w", i), App: "bench", Topic: fmt.Sprint("topic/", i), Host: "quick.example:443"}
				if i%100 == 0 {
					w.Host = "dead.example:443"
				}
				if err := t.PutWebhook(w); err != nil {
					return err
				}
				for _, seq := range places {
					if err := t.QueueDelivery(wake.Delivery{Webhook: w.ID, Seq: seq, NextAt: at}); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkQueue is what the store takes for deliveries: claims of up to 64, then for each its health, an attempt and its end,
// each an update of its own, 64 at once. One in a hundred of 10,000 webhooks is at a host that is left out.
func BenchmarkQueue(b *testing.B) {
	s := openBench(b)
	fillQueue(b, s, 10_000, b.N/9_900+1)
	b.ResetTimer()
	for done := 0; done < b.N; {
		var claimed []wake.Delivery
		err := s.Update(context.Background(), func(t store.Tx) (err error) {
			at := time.Now()
			claimed, err = t.ClaimDeliveries(store.ClaimQuery{Now: at, Lease: at.Add(time.Hour), Limit: 64, PerWebhook: 4,
				ExceptHosts: []string{"dead.example:443"}})
			return err
		})
		if err != nil || len(claimed) == 0 {
			b.Fatalf("%d claimed, %v", len(claimed), err)
		}
		var all sync.WaitGroup
		for _, d := range claimed {
			all.Go(func() {
				err := s.Update(context.Background(), func(t store.Tx) error {
					at := time.Now()
					h, err := t.Health(d.Webhook)
					if err != nil {
						return err
					}
					h.LastDeliveryAt = at
					if err := t.PutHealth(h); err != nil {
						return err
					}
					a := wake.Attempt{Webhook: d.Webhook, Seq: d.Seq, Number: 1, At: at, Status: 200, Outcome: wake.AttemptDelivered}
					if err := t.RecordAttempt(a); err != nil {
						return err
					}
					_, err = t.FinishDelivery(d)
					return err
				})
				if err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		done += len(claimed)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
}
