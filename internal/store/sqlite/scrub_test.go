package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// secret is in all that is removed, in payloads, keys, topics and ids.
const secret = "zaubertrank"

// filesHold counts how often the database's files hold the text.
func filesHold(t *testing.T, path, text string) map[string]int {
	t.Helper()
	found := map[string]int{}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 3 {
		t.Fatalf("the database's files: %q, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(content, []byte(text)); n > 0 {
			found[filepath.Base(file)] = n
		}
	}
	return found
}

// TestScrub removes an app whose every row is mixed with another's, in pages that were split many times, and searches the
// files for what it held.
func TestScrub(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "rouse.db")
	s := open(t, path)
	for _, app := range []string{"gone", "kept"} {
		update(t, s, func(tx store.Tx) error { return tx.CreateApp(wake.App{ID: app}) })
	}
	fill := func(tx store.Tx, text, app string) error {
		c := wake.Conversation{ID: "c " + text, App: app, User: text, CreatedAt: time.Now(), SeenAt: time.Now()}
		sub := wake.Subscription{
			ID: "s " + text, App: app, Conversation: c.ID, User: text, Topic: text, ExpiresAt: time.Now().Add(time.Hour),
		}
		o := wake.Occurrence{App: app, Topics: []string{text}, Event: "e", Key: text, Text: text}
		o.Data = fmt.Appendf(nil, `{"text":%q}`, strings.Repeat(text+" ", random.IntN(300)))
		_, err := tx.Append(o)
		return errors.Join(tx.PutConversation(c), tx.PutSubscription(sub), err)
	}
	for range 60 {
		update(t, s, func(tx store.Tx) (err error) {
			for range 50 {
				app, word := "kept", "harmless"
				if random.IntN(2) == 0 {
					app, word = "gone", secret
				}
				err = errors.Join(err, fill(tx, fmt.Sprintf("%x %s", random.Uint64(), word), app))
			}
			return err
		})
	}
	subscriptions := func(app string) (n int) {
		view(t, s, func(r store.Reader) {
			found, err := r.SubscriptionsOfApp(app)
			if n = len(found); err != nil {
				t.Error(err)
			}
		})
		return n
	}
	kept := subscriptions("kept")
	if len(filesHold(t, path, secret)) == 0 {
		t.Fatal("the files do not hold what is to be removed: this test sees nothing")
	}
	update(t, s, func(tx store.Tx) error { return tx.DeleteApp("gone") })
	if err := s.Scrub(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := filesHold(t, path, secret); len(found) > 0 {
		t.Errorf("seed %d: the files still hold what was removed: %v", seed, found)
	}
	if got := subscriptions("kept"); got != kept {
		t.Errorf("%d subscriptions of the other app, want %d", got, kept)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path) // which checks it whole
}

// TestScrubTogether has many scrub at once, while others write and read, and the store close.
func TestScrubTogether(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := 0; ; n++ {
				err := s.Update(t.Context(), func(tx store.Tx) error { return emit(tx, fmt.Sprint(i, "/", n)) })
				if errors.Is(err, store.ErrClosed) {
					return
				}
				err = errors.Join(err, s.View(t.Context(), func(r store.Reader) error {
					_, err := r.Occurrences("app", []string{"topic"}, 0, 10)
					return err
				}))
				if err != nil && !errors.Is(err, store.ErrClosed) {
					t.Error(err)
				}
			}
		})
	}
	var scrubs sync.WaitGroup
	for range 8 {
		scrubs.Go(func() {
			for range 3 {
				if err := s.Scrub(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	scrubs.Wait()
	for range 4 {
		all.Go(func() {
			for {
				if err := s.Scrub(t.Context()); err != nil {
					if !errors.Is(err, store.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	if err := s.Scrub(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
