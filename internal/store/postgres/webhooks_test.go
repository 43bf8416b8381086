package postgres_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
	"github.com/rouse-dev/rouse/internal/wake"
)

// before makes a database as it was at an earlier schema, with these rows.
func before(t *testing.T, version int64, rows ...string) (address string) {
	t.Helper()
	address = pgtest.Database(t)
	config, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, address, rows...)
	return address
}

// Webhooks and what is queued for them outlive the schema that gave them hosts, health and notices.
func TestWebhooksOfAnEarlierSchema(t *testing.T) {
	t.Parallel()
	const columns = "id, app, principal, user_id, url, event, topic, dialect, from_seq, created_at, expires_at, secret, former_until, " +
		"last_delivery_at, last_error, failed_since, suspended, due_at"
	s := open(t, before(t, 3,
		"INSERT INTO log (id, epoch, head, horizon, manifests, changes, bytes, erased, scrubbed, master) VALUES (1, 'abcd', 2, 0, 0, 0, 0, 0, 0, '')",
		"INSERT INTO apps (id, name, created_at) VALUES ('app', 'App', 1)",
		"INSERT INTO occurrences (seq, app, kind, event, topics, text, matched, at) VALUES (1, 'app', 'event', 'e', 'topic', '', 1, 1)",
		"INSERT INTO occurrences (seq, app, kind, event, topics, text, matched, at) VALUES (2, 'app', 'event', 'e', 'topic', '', 1, 1)",
		"INSERT INTO topic_places (app, topic, seq) VALUES ('app', 'topic', 1), ('app', 'topic', 2)",
		"INSERT INTO webhooks ("+columns+") VALUES ('w', 'app', 'user/ada', 'ada', 'https://example.com/', 'e', 'topic', 'draft', 0, 5, 9000000, "+
			"'\\x00', 0, 7000000, 'timeout', 8000000, false, 3000000)",
		"INSERT INTO webhooks ("+columns+") VALUES ('new', 'app', 'user/ada', 'ada', 'https://example.com/', 'e', 'topic', 'draft', 0, 5, 9000000, "+
			"'\\x00', 0, 0, '', 0, true, NULL)",
		"INSERT INTO deliveries (webhook, seq, attempts, next_at, error, claim, leased) VALUES ('w', 1, 2, 3000000, 'timeout', 4, false), ('w', 2, 0, 4000000, '', 1, true)",
	))
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Fatalf("%v, %v", problems, err)
	}
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
	hook := wake.Webhook{ID: "w", App: "app", Principal: "user/ada", User: "ada", URL: "https://example.com/", Event: "e", Topic: "topic",
		Dialect: "draft", CreatedAt: time.UnixMicro(5).UTC(), ExpiresAt: at(9), Secret: []byte{0}}
	another := hook
	another.ID, another.Suspended = "new", true
	if err := s.View(t.Context(), func(r store.Reader) error {
		hooks, err := r.WebhooksOfApp("app")
		if diff := cmp.Diff([]wake.Webhook{hook, another}, hooks); err != nil || diff != "" {
			t.Errorf("webhooks: %v (-want +got):\n%s", err, diff)
		}
		for _, want := range []wake.Health{{Webhook: "w", LastDeliveryAt: at(7), LastError: "timeout", FailedSince: at(8)}, {Webhook: "new"}} {
			if h, err := r.Health(want.Webhook); err != nil || h != want {
				t.Errorf("health %+v, %v; want %+v", h, err, want)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var claimed []wake.Delivery
	if err := s.Update(t.Context(), func(tx store.Tx) (err error) {
		claimed, err = tx.ClaimDeliveries(store.ClaimQuery{Now: at(5), Lease: at(50), Limit: 10, PerWebhook: 10})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := []wake.Delivery{
		{Webhook: "w", Seq: 1, Attempts: 2, NextAt: at(50), Error: "timeout", Claim: 5, Watermark: 1},
		{Webhook: "w", Seq: 2, NextAt: at(50), Claim: 2, Watermark: 0},
	}
	if diff := cmp.Diff(want, claimed); diff != "" {
		t.Errorf("claimed (-want +got):\n%s", diff)
	}
}

// BenchmarkQueue is what the store takes for deliveries, as that of SQLite.
func BenchmarkQueue(b *testing.B) {
	const hooks = 1000
	s := openBench(b)
	at := time.Now()
	err := s.Update(b.Context(), func(t store.Tx) error {
		for i := range hooks {
			if err := t.PutWebhook(wake.Webhook{ID: fmt.Sprint("w", i), App: "bench", Topic: fmt.Sprint("topic/", i)}); err != nil {
				return err
			}
		}
		for range b.N/hooks + 1 {
			seq, err := t.Append(wake.Occurrence{App: "bench", Topics: []string{"topic"}, At: at})
			if err != nil {
				return err
			}
			for i := range hooks {
				if err := t.QueueDelivery(wake.Delivery{Webhook: fmt.Sprint("w", i), Seq: seq, NextAt: at}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for done := 0; done < b.N; {
		var claimed []wake.Delivery
		err := s.Update(context.Background(), func(t store.Tx) (err error) {
			at := time.Now()
			claimed, err = t.ClaimDeliveries(store.ClaimQuery{Now: at, Lease: at.Add(time.Hour), Limit: 64, PerWebhook: 4, ExceptHosts: []string{"dead.example:443"}})
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
					if err := t.PutHealth(wake.Health{Webhook: d.Webhook, LastDeliveryAt: at}); err != nil {
						return err
					}
					a := wake.Attempt{Webhook: d.Webhook, Seq: d.Seq, Number: 1, At: at, Status: 200, Outcome: wake.AttemptDelivered}
					if err := t.RecordAttempt(a); err != nil {
						return err
					}
					_, err := t.FinishDelivery(d)
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
