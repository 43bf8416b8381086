package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	database "github.com/rouse-dev/rouse/internal/postgres"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
	"github.com/rouse-dev/rouse/internal/wake"
)

var now = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

// update runs one transaction that must succeed.
func update(t testing.TB, s store.Store, f func(store.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

func addApp(t testing.TB, s store.Store, id string) {
	t.Helper()
	update(t, s, func(tx store.Tx) error { return tx.CreateApp(wake.App{ID: id, CreatedAt: now}) })
}

func occurrence(app, topic, key string) wake.Occurrence {
	return wake.Occurrence{App: app, Kind: wake.KindEvent, Event: "e", Topics: []string{topic}, Text: "text", Data: []byte(`{}`), Key: key, At: now}
}

func add(t testing.TB, s store.Store, o wake.Occurrence) {
	t.Helper()
	update(t, s, func(tx store.Tx) error { _, err := tx.Append(o); return err })
}

// keysOn lists the keys of what is on a topic.
func keysOn(t testing.TB, s store.Store, app, topic string, after wake.Seq) (keys []string, last wake.Seq) {
	t.Helper()
	err := s.View(t.Context(), func(r store.Reader) error {
		found, err := r.Occurrences(app, []string{topic}, after, 1000)
		for _, o := range found {
			keys, last = append(keys, o.Key), o.Seq
		}
		if len(found) == 0 { // to the end of the log, as a reader may
			log, err := r.Log()
			last = log.Head
			return err
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return keys, last
}

// Several nodes write at once, some of them slow between taking a place and committing it, while readers on all of them follow
// by cursor: none may skip or reorder anything.
func TestNodesInOrder(t *testing.T) {
	t.Parallel()
	follow(t, pgtest.Database(t))
}

func follow(t *testing.T, address string) {
	const nodes, publishers, each = 3, 4, 30
	var stores []*postgres.Store
	for range nodes {
		stores = append(stores, open(t, address))
	}
	addApp(t, stores[0], "app")
	var writing, reading sync.WaitGroup
	done := make(chan struct{})
	read := make([][]string, nodes)
	for n, s := range stores {
		for p := range publishers {
			writing.Go(func() {
				for i := range each {
					update(t, s, func(tx store.Tx) error {
						_, err := tx.Append(occurrence("app", "topic", fmt.Sprintf("%d/%d/%d", n, p, i)))
						if i%10 == p { // others have every chance to overtake it
							time.Sleep(time.Millisecond)
						}
						return err
					})
				}
			})
		}
		reading.Go(func() {
			var cursor wake.Seq
			for ended := false; !ended; {
				select {
				case <-done:
					ended = true // and look once more
				default:
				}
				keys, last := keysOn(t, s, "app", "topic", cursor)
				read[n] = append(read[n], keys...)
				cursor = last
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	all, _ := keysOn(t, stores[0], "app", "topic", 0)
	if len(all) != nodes*publishers*each {
		t.Fatalf("%d occurrences, want %d", len(all), nodes*publishers*each)
	}
	next := map[string]int{}
	for _, key := range all {
		var n, p, i int
		if _, err := fmt.Sscanf(key, "%d/%d/%d", &n, &p, &i); err != nil {
			t.Fatal(err)
		}
		if who := fmt.Sprint(n, "/", p); next[who] != i {
			t.Fatalf("occurrence %s after %d of that publisher", key, next[who])
		} else {
			next[who]++
		}
	}
	for n := range read {
		if diff := cmp.Diff(all, read[n]); diff != "" {
			t.Errorf("what a reader on node %d has followed (-want +got):\n%s", n, diff)
		}
	}
}

// What a node has at hand is right at once when another node changes it.
func TestNodesSeeChanges(t *testing.T) {
	t.Parallel()
	seeChanges(t, pgtest.Database(t))
}

func seeChanges(t *testing.T, address string) {
	here, there := open(t, address), open(t, address)
	addApp(t, here, "app")
	c := wake.Conversation{ID: "c", App: "app", CreatedAt: now, SeenAt: now}
	update(t, here, func(tx store.Tx) error { return tx.PutConversation(c) })
	type sight struct {
		Version                 int64
		Subscriptions, Webhooks []string
		Append                  string
	}
	// look is what an emit sees, on the first node, which has it at hand from the last time.
	look := func() (s sight) {
		t.Helper()
		update(t, here, func(tx store.Tx) (err error) {
			s = sight{}
			if s.Version, err = tx.ManifestVersion("app"); err != nil {
				return err
			}
			subs, err := tx.SubscriptionsTo("app", []string{"topic", "other"})
			if err != nil {
				return err
			}
			for _, sub := range subs {
				s.Subscriptions = append(s.Subscriptions, sub.ID)
			}
			hooks, err := tx.WebhooksTo("app", []string{"topic"})
			for _, hook := range hooks {
				s.Webhooks = append(s.Webhooks, hook.ID)
			}
			return err
		})
		if err := here.Update(t.Context(), func(tx store.Tx) error { _, err := tx.Append(occurrence("app", "x", "")); return err }); err != nil {
			s.Append = err.Error()
		}
		return s
	}
	subscription := wake.Subscription{ID: "s", App: "app", Conversation: "c", Topic: "topic", CreatedAt: now, ExpiresAt: now}
	second := subscription
	second.ID, second.Topic = "s2", "other"
	hook := wake.Webhook{ID: "w", App: "app", Topic: "topic", CreatedAt: now, ExpiresAt: now}
	steps := []struct {
		name   string
		change func(store.Tx) error
		want   sight
	}{
		{"nothing yet", func(store.Tx) error { return nil }, sight{}},
		{"a manifest", func(tx store.Tx) error { _, err := tx.PutManifest("app", []byte(`{}`)); return err }, sight{Version: 1}},
		{"a subscription", func(tx store.Tx) error { return tx.PutSubscription(subscription) }, sight{Version: 1, Subscriptions: []string{"s"}}},
		{"another", func(tx store.Tx) error { return tx.PutSubscription(second) }, sight{Version: 1, Subscriptions: []string{"s", "s2"}}},
		{"its end", func(tx store.Tx) error { _, err := tx.EndSubscription("s", 1, now); return err }, sight{Version: 1, Subscriptions: []string{"s2"}}},
		{"a webhook", func(tx store.Tx) error { return tx.PutWebhook(hook) }, sight{Version: 1, Subscriptions: []string{"s2"}, Webhooks: []string{"w"}}},
		{"no webhook", func(tx store.Tx) error { _, err := tx.DeleteWebhook("w"); return err }, sight{Version: 1, Subscriptions: []string{"s2"}}},
		{"no app", func(tx store.Tx) error { return tx.DeleteApp("app") }, sight{Append: store.ErrNotFound.Error()}},
		{"the app anew", func(tx store.Tx) error { return tx.CreateApp(wake.App{ID: "app", CreatedAt: now}) }, sight{}},
	}
	for _, step := range steps {
		update(t, there, step.change)
		if diff := cmp.Diff(step.want, look()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestNodesSpend(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	stores := []*postgres.Store{open(t, address), open(t, address), open(t, address)}
	const ids, callers = 100, 4
	var fresh [ids]atomic.Int64
	var all sync.WaitGroup
	for _, s := range stores {
		for caller := range callers {
			all.Go(func() {
				for i := range ids {
					id := (i*7 + caller*13) % ids // not all in the same order
					is, err := s.Spend(t.Context(), "scope", fmt.Sprint(id), time.Now().Add(time.Hour))
					if err != nil {
						t.Error(err)
					}
					if is {
						fresh[id].Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	for id := range fresh {
		if n := fresh[id].Load(); n != 1 {
			t.Errorf("id %d was fresh %d times", id, n)
		}
	}
}

// Nodes that start together on an empty database make its tables once.
func TestNodesStartTogether(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	d, err := database.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var epochs sync.Map
	for range 4 {
		all.Go(func() {
			s, err := postgres.Open(t.Context(), d, postgres.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			channel, err := s.Channel(t.Context())
			if err != nil {
				t.Error(err)
			}
			epochs.Store(channel, true)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	n := 0
	epochs.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d logs were made", n)
	}
}
