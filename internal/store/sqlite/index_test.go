package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
	"github.com/rouse-dev/rouse/internal/wake"
)

// seqs reads the places of all occurrences on the topics.
func seqs(t *testing.T, r store.Reader, topics ...string) []wake.Seq {
	t.Helper()
	found, err := r.Occurrences("app", topics, 0, 100_000)
	if err != nil {
		t.Error(err)
	}
	var seqs []wake.Seq
	for _, o := range found {
		seqs = append(seqs, o.Seq)
	}
	return seqs
}

// TestViewBeforeIndex reads in a view what the topic index of its snapshot has not yet, and memory no longer.
func TestViewBeforeIndex(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	append := func(n int, topics ...string) {
		update(t, s, func(tx store.Tx) error {
			for range n {
				if _, err := tx.Append(wake.Occurrence{App: "app", Topics: topics}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	append(2, "topic") // 1, 2
	update(t, s, sqlite.WriteIndex)
	append(2, "topic", "another") // 3, 4
	append(1, "another")          // 5
	view(t, s, func(r store.Reader) {
		update(t, s, sqlite.WriteIndex)
		append(3, "topic", "another")
		update(t, s, sqlite.WriteIndex)
		for _, test := range []struct {
			topics []string
			want   []wake.Seq
		}{
			{[]string{"topic"}, []wake.Seq{1, 2, 3, 4}},
			{[]string{"another"}, []wake.Seq{3, 4, 5}},
			{[]string{"topic", "another"}, []wake.Seq{1, 2, 3, 4, 5}},
			{[]string{"none"}, nil},
		} {
			if diff := cmp.Diff(test.want, seqs(t, r, test.topics...)); diff != "" {
				t.Errorf("on %v (-want +got):\n%s", test.topics, diff)
			}
		}
		found, err := r.Occurrences("app", []string{"topic"}, 2, 1)
		if err != nil || len(found) != 1 || found[0].Seq != 3 {
			t.Errorf("the first after 2: %v, %v", found, err)
		}
	})
}

// TestUncleanEnd opens a database again whose index lags behind its log, as after a crash.
func TestUncleanEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rouse.db")
	s := open(t, path)
	update(t, s, func(tx store.Tx) error { return tx.CreateApp(wake.App{ID: "app"}) })
	for i := range 3000 {
		if i%100 == 0 {
			update(t, s, func(tx store.Tx) error {
				for range 100 {
					if _, err := tx.Append(wake.Occurrence{App: "app", Topics: []string{"topic"}}); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	copied := filepath.Join(t.TempDir(), "copied.db")
	update(t, s, func(tx store.Tx) error {
		copyFile(t, path, copied)
		copyFile(t, path+"-wal", copied+"-wal")
		return nil
	})
	again := open(t, copied)
	check := func() {
		t.Helper()
		view(t, again, func(r store.Reader) {
			if got := len(seqs(t, r, "topic")); got != 3000 {
				t.Errorf("%d occurrences, want 3000", got)
			}
		})
	}
	check()
	update(t, again, sqlite.WriteIndex)
	check()
}

// TestReadersWhileIndexing has readers follow by cursor while the index is written again and again.
func TestReadersWhileIndexing(t *testing.T) {
	t.Parallel()
	const publishers, each, topics = 8, 100, 4
	s := newStore(t)
	var publishing, others sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for p := range publishers {
		publishing.Go(func() {
			for i := range each {
				topics := []string{fmt.Sprint("topic/", (p+i)%topics), "everything"}
				update(t, s, func(tx store.Tx) error {
					_, err := tx.Append(wake.Occurrence{App: "app", Topics: topics})
					return err
				})
			}
		})
	}
	others.Go(func() {
		for ctx.Err() == nil {
			_ = s.Update(ctx, sqlite.WriteIndex)
			runtime.Gosched()
		}
	})
	for i := range topics + 2 {
		follow := []string{fmt.Sprint("topic/", i)}
		want := publishers * each / topics
		switch i {
		case topics:
			follow, want = []string{"everything"}, publishers*each
		case topics + 1:
			follow, want = []string{"topic/0", "topic/1", "topic/2", "topic/3"}, publishers*each
		}
		others.Go(func() {
			read := 0
			for cursor := wake.Seq(0); ; runtime.Gosched() {
				ended := ctx.Err() != nil
				before := read
				err := s.View(context.Background(), func(r store.Reader) error {
					log, err := r.Log()
					if err != nil {
						return err
					}
					found, err := r.Occurrences("app", follow, cursor, 50)
					read += len(found)
					if cursor = log.Head; len(found) > 0 && len(found) == 50 {
						cursor = found[len(found)-1].Seq
					}
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				if ended && read == before {
					break
				}
			}
			if read != want {
				t.Errorf("on %v read %d, want %d", follow, read, want)
			}
		})
	}
	publishing.Wait()
	cancel()
	others.Wait()
}

// TestIndexWhenFull has no room for the index when it is due: updates go on, the log says so once, and readers do without.
func TestIndexWhenFull(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "rouse.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	update(t, s, func(tx store.Tx) error { return tx.CreateApp(wake.App{ID: "app"}) })
	const many = 6000 // topics
	update(t, s, func(tx store.Tx) error {
		for i := range many {
			if _, err := tx.Append(wake.Occurrence{App: "app", Topics: []string{fmt.Sprint("topic/", i)}}); err != nil {
				return err
			}
		}
		return sqlite.LimitSize(tx, 0)
	})
	nothing := func(store.Tx) error { return nil }
	for range 3 {
		update(t, s, nothing)
	}
	if indexed, waiting := sqlite.Indexed(s); indexed != 0 || waiting != many {
		t.Errorf("indexed up to %d with %d waiting, want none and all", indexed, waiting)
	}
	view(t, s, func(r store.Reader) {
		if diff := cmp.Diff([]wake.Seq{124}, seqs(t, r, "topic/123")); diff != "" {
			t.Errorf("on a topic (-want +got):\n%s", diff)
		}
	})
	update(t, s, func(tx store.Tx) error { return sqlite.LimitSize(tx, -1) })
	update(t, s, nothing)
	if indexed, waiting := sqlite.Indexed(s); indexed != many || waiting != 0 {
		t.Errorf("with room again indexed up to %d with %d waiting, want all and none", indexed, waiting)
	}
	if err := s.Close(); err != nil { // and with it everybody who writes to the log
		t.Fatal(err)
	}
	if got := strings.Count(log.String(), "\n"); got != 1 {
		t.Errorf("%d lines in the log, want 1:\n%s", got, &log)
	}
}

// TestIndexIsWritten finds the index written once there is enough for it, without being asked.
func TestIndexIsWritten(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for range 2 {
		update(t, s, func(tx store.Tx) error {
			for range 5000 {
				if _, err := tx.Append(wake.Occurrence{App: "app", Topics: []string{"topic"}, At: time.Now()}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if indexed, waiting := sqlite.Indexed(s); indexed != 5000 || waiting != 5000 {
		t.Errorf("indexed up to %d with %d waiting, want 5000 and 5000", indexed, waiting)
	}
}
