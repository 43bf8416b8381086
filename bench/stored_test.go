package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/appapi"
	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/postgres"
	"github.com/rouse-dev/rouse/internal/store"
	pgstore "github.com/rouse-dev/rouse/internal/store/postgres"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
	"github.com/rouse-dev/rouse/internal/wake"
)

// BenchmarkEmitStored is what an emit costs with this much in the database: subscriptions, each of a conversation and to a job of
// its own, with every emit for the next of them; and occurrences, with an id each.
func BenchmarkEmitStored(b *testing.B) {
	for _, subscriptions := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("subscriptions=%d", subscriptions), func(b *testing.B) {
			measureStored(b, stored{subscriptions: subscriptions})
		})
	}
	for _, occurrences := range []int{0, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("occurrences=%d", occurrences), func(b *testing.B) {
			measureStored(b, stored{subscriptions: 10, occurrences: occurrences})
		})
	}
}

// measureStored fills a database once, and measures emits with the core that has it.
func measureStored(b *testing.B, s stored) {
	database := openStore(b)
	b.Cleanup(func() {
		if err := database.Close(); err != nil {
			b.Error(err)
		}
	})
	s.fill(b, database)
	t := serve(b, database)
	b.Run("emit", func(b *testing.B) {
		emitFrom(b, t, func(i int) string { return fmt.Sprintf("j%d", i%s.subscriptions) })
	})
}

// openStore opens an empty database, which its caller closes: SQLite in a directory that ends with the benchmark, or a PostgreSQL
// database, which ends with it too, on the server whose address ROUSE_BENCH_DATABASE is.
func openStore(b *testing.B) store.Store {
	b.Helper()
	if address := os.Getenv("ROUSE_BENCH_DATABASE"); address != "" {
		return openPostgres(b, address)
	}
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "rouse.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func openPostgres(b *testing.B, address string) store.Store {
	b.Helper()
	address, remove, err := postgres.MakeTemporary(b.Context(), address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := remove(context.Background()); err != nil {
			b.Error(err)
		}
	})
	database, err := postgres.Open(b.Context(), address)
	if err != nil {
		b.Fatal(err)
	}
	s, err := pgstore.Open(b.Context(), database, pgstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// storedApp is the app that what is stored belongs to.
const storedApp = "app"

// serve starts a core on a database that has the app.
func serve(b *testing.B, database store.Store) *target {
	b.Helper()
	server := httptest.NewUnstartedServer(nil)
	base := "http://" + server.Listener.Addr().String()
	c, err := core.New(b.Context(), core.Options{Store: database, Master: credential.NewMaster([32]byte{1}), PublicURL: base})
	if err != nil {
		b.Fatal(err)
	}
	server.Config.Handler = appapi.New(c, appapi.Options{})
	server.Start()
	b.Cleanup(func() {
		server.Close()
		c.Close()
	})
	_, key, err := c.CreateKey(b.Context(), storedApp, "")
	if err != nil {
		b.Fatal(err)
	}
	t := newTarget(b, base, "/api/apps/v1/events/emit", app{key.PrivateKey(), credential.KeyID(key.PublicKey()), base + "/api/apps"})
	if _, err := t.call(http.MethodPut, "/api/apps/v1/manifest", []byte(manifest)); err != nil {
		b.Fatal(err)
	}
	return t
}

// stored is how much is in a database.
type stored struct{ subscriptions, occurrences int }

// fill writes it straight to the store, many at a time: it is not what is measured.
func (s stored) fill(b *testing.B, database store.Store) {
	b.Helper()
	at := time.Now()
	err := database.Update(b.Context(), func(tx store.Tx) error {
		return tx.CreateApp(wake.App{ID: storedApp, Name: storedApp, CreatedAt: at})
	})
	if err == nil {
		err = inSteps(b.Context(), database, s.subscriptions, func(tx store.Tx, i int) error { return putSubscription(tx, i, at) })
	}
	if err == nil {
		err = inSteps(b.Context(), database, s.occurrences, func(tx store.Tx, i int) error { return putOccurrence(tx, i, at) })
	}
	if err != nil {
		b.Fatal(err)
	}
}

// inSteps calls f for each of n, a thousand in one transaction.
func inSteps(ctx context.Context, database store.Store, n int, f func(tx store.Tx, i int) error) error {
	const step = 1000
	for begin := 0; begin < n; begin += step {
		err := database.Update(ctx, func(tx store.Tx) error {
			for i := begin; i < min(begin+step, n); i++ {
				if err := f(tx, i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func putSubscription(tx store.Tx, i int, at time.Time) error {
	conversation := wake.Conversation{ID: fmt.Sprintf("cnv_%d", i), App: storedApp, Harness: "claude-code", Client: "claude-code", CreatedAt: at, SeenAt: at}
	if err := tx.PutConversation(conversation); err != nil {
		return err
	}
	return tx.PutSubscription(wake.Subscription{ID: fmt.Sprintf("sub_%d", i), App: storedApp, Conversation: conversation.ID, Event: "job.done",
		Topic: fmt.Sprintf("ev/job.done/j%d", i), Arguments: json.RawMessage(fmt.Sprintf(`{"job":"j%d"}`, i)),
		CreatedAt: at, ExpiresAt: at.Add(24 * time.Hour)})
}

// storedJobs is how many jobs the stored occurrences are of.
const storedJobs = 1000

func putOccurrence(tx store.Tx, i int, at time.Time) error {
	job := fmt.Sprintf("j%d", i%storedJobs)
	_, err := tx.Append(wake.Occurrence{App: storedApp, Kind: wake.KindEvent, Event: "job.done", Topics: []string{"ev/job.done/" + job},
		Arguments: json.RawMessage(`{"job":"` + job + `"}`), Text: "Job " + job + " is done", Key: fmt.Sprintf("stored-%d", i),
		Data: json.RawMessage(`{"n":1,"note":"of a job"}`), At: at})
	return err
}
