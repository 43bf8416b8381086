package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
	"github.com/rouse-dev/rouse/internal/wake"
)

func logOf(t *testing.T, s store.Store) (log store.Log) {
	t.Helper()
	if err := s.View(t.Context(), func(r store.Reader) (err error) {
		log, err = r.Log()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return log
}

// A copy that is made while others write is of one moment, and whole.
func TestCopyWhileItIsWritten(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	s := open(t, filepath.Join(directory, "rouse.db"))
	update(t, s, func(tx store.Tx) error { return tx.CreateApp(wake.App{ID: "app"}) })
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		for i := 0; ; i++ {
			err := s.Update(ctx, func(tx store.Tx) error {
				_, err := tx.Append(wake.Occurrence{App: "app", Topics: []string{"topic", fmt.Sprint(i % 7)}, Text: strings.Repeat("t", 1000)})
				return err
			})
			if i == 100 {
				close(begun)
			}
			if err != nil {
				stopped <- err
				return
			}
		}
	}()
	<-begun
	copied := filepath.Join(directory, "copy.db")
	before := logOf(t, s)
	err := s.Copy(t.Context(), copied)
	after := logOf(t, s)
	stop()
	if err := <-stopped; !errors.Is(err, context.Canceled) {
		t.Errorf("writing beside it: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	restored := filepath.Join(directory, "restored.db")
	if err := sqlite.Install(t.Context(), copied, restored, false); err != nil {
		t.Fatal(err)
	}
	got := logOf(t, open(t, restored))
	if got.Head < before.Head || got.Head > after.Head || got.Epoch == before.Epoch {
		t.Errorf("the copy's log is %+v, made between %+v and %+v", got, before, after)
	}
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestCopyLeavesNothingWhenItFails(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	s := open(t, filepath.Join(directory, "rouse.db"))
	taken := filepath.Join(directory, "taken")
	if err := os.WriteFile(taken, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Copy(t.Context(), taken); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	if content, err := os.ReadFile(taken); err != nil || string(content) != "precious" {
		t.Errorf("the file is now %q, %v", content, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := filepath.Join(directory, "ended")
	if err := s.Copy(ctx, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if _, err := os.Lstat(ended); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for where, damage := range map[string]string{
		"log":           "UPDATE log SET horizon = head + 1",
		"occurrences":   "UPDATE occurrences SET seq = 1000 WHERE seq = 4",
		"conversations": "UPDATE conversations SET position = 1000",
		"subscriptions": "UPDATE subscriptions SET from_seq = 1000",
		"deliveries":    "UPDATE deliveries SET seq = seq + 1000",
		"webhooks":      "UPDATE webhooks SET due_at = due_at + 1",
		"topic_places":  "UPDATE topic_places SET topic = 'another' WHERE topic = 'topic'",
		"manifests":     "UPDATE manifests SET version = 9",
		"owed":          "UPDATE owed SET holder = 'nobody'",
		"keys":          "UPDATE keys SET app = 'nobody'",
	} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "rouse.db")
			fill(t, path)
			execute(t, path, damage)
			problems, err := open(t, path).Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range problems {
				if problem.Where == where {
					return
				}
			}
			t.Errorf("found %v", problems)
		})
	}
}

// fill makes a database with something of everything, and closes it.
func fill(t *testing.T, path string) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	update(t, s, func(tx store.Tx) error {
		conversation := wake.Conversation{ID: "c", App: "app", User: "ada"}
		sub := wake.Subscription{ID: "s", App: "app", Conversation: "c", Topic: "topic"}
		hook := wake.Webhook{ID: "w", App: "app", Topic: "topic"}
		for _, err := range []error{
			tx.CreateApp(wake.App{ID: "app"}), tx.CreateKey(wake.Key{ID: "key", App: "app", Public: []byte{1}}),
			tx.PutConversation(conversation), tx.PutSubscription(sub), tx.PutWebhook(hook),
		} {
			if err != nil {
				return err
			}
		}
		if _, err := tx.PutManifest("app", []byte(`{}`)); err != nil {
			return err
		}
		for range 5 {
			seq, err := tx.Append(wake.Occurrence{App: "app", Kind: wake.KindEvent, Topics: []string{"topic", "other"}})
			if err != nil {
				return err
			}
			if err := tx.QueueDelivery(wake.Delivery{Webhook: "w", Seq: seq}); err != nil {
				return err
			}
			if err := tx.Owe(seq, []wake.Subscription{sub}, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Fatalf("before anything is wrong: %v, %v", problems, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// execute runs a statement on a database that nobody has open.
func execute(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
