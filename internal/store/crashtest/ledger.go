package crashtest

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// An entry is one message's place in the log.
type entry struct {
	Seq wake.Seq
	Key string
}

// A ledger is what the test knows to be in the database.
type ledger struct {
	log          []entry // of the rounds so far
	acknowledged int
	last         [publishers]wake.Seq // the place of each publisher's last message
	subscribers  [publishers][]string // the ids of each conversation's subscriptions, the last one live
}

func (l *ledger) head() wake.Seq {
	if len(l.log) == 0 {
		return 0
	}
	return l.log[len(l.log)-1].Seq
}

// check compares the database with the ledger after a round, and takes what is new into the ledger.
func (l *ledger) check(t *testing.T, s store.Store, round int, acknowledged map[message]wake.Seq) {
	err := s.View(t.Context(), func(r store.Reader) error {
		fresh, err := l.newEntries(t, r)
		if err != nil {
			return err
		}
		l.take(t, round, fresh, acknowledged)
		compare(t, "topic of everything", fresh, onTopic(t, r, everything, l.head()))
		l.log = append(l.log, fresh...)
		l.acknowledged += len(acknowledged)
		l.checkConversations(t, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// newEntries reads the log place by place from where the ledger ends.
func (l *ledger) newEntries(t *testing.T, r store.Reader) ([]entry, error) {
	log, err := r.Log()
	if err != nil {
		return nil, err
	}
	if log.Head < l.head() {
		t.Errorf("the log ends at %d, and it had reached %d", log.Head, l.head())
	}
	var fresh []entry
	for seq := l.head() + 1; seq <= log.Head; seq++ {
		o, err := r.Occurrence(seq)
		if errors.Is(err, store.ErrNotFound) {
			continue // a place may stay empty
		}
		if err != nil {
			return nil, err
		}
		if m, err := parseKey(o.Key); err != nil || string(o.Data) != m.data() {
			t.Errorf("place %d holds %q with data that was not sent: %s", seq, o.Key, o.Data)
		}
		fresh = append(fresh, entry{seq, o.Key})
	}
	return fresh, nil
}

// take goes through the round's new entries: of each publisher all messages that were acknowledged are there in their
// order, in the places it was told, and at most one more, which was on its way.
func (l *ledger) take(t *testing.T, round int, fresh []entry, acknowledged map[message]wake.Seq) {
	var sent [publishers]int
	for _, e := range fresh {
		m, err := parseKey(e.Key)
		if err != nil || m.round != round || m.publisher >= publishers || m.n != sent[m.publisher]+1 {
			t.Errorf("place %d holds %s after %d messages of that publisher", e.Seq, e.Key, sent[m.publisher])
			continue
		}
		sent[m.publisher]++
		if seq, ok := acknowledged[m]; ok && seq != e.Seq {
			t.Errorf("message %s is at %d, and %d was acknowledged", e.Key, e.Seq, seq)
		}
		l.last[m.publisher] = e.Seq
		if m.changesSubscriber() {
			l.subscribers[m.publisher] = append(l.subscribers[m.publisher], m.subscription())
		}
	}
	var told [publishers]int
	for m := range acknowledged {
		told[m.publisher] = max(told[m.publisher], m.n)
	}
	for p := range publishers {
		if sent[p] != told[p] && sent[p] != told[p]+1 {
			t.Errorf("publisher %d: %d messages are there, %d were acknowledged", p, sent[p], told[p])
		}
	}
}

// checkConversations compares what else the transactions changed.
func (l *ledger) checkConversations(t *testing.T, r store.Reader) {
	if len(l.log) == 0 {
		return // killed before there was any
	}
	for p := range publishers {
		c, err := r.Conversation(conversation(p))
		if err != nil {
			t.Errorf("%s: %v", conversation(p), err)
		}
		if c.Position != l.last[p] {
			t.Errorf("%s is at %d, its last message at %d", c.ID, c.Position, l.last[p])
		}
		ever, err := r.SubscriptionsEver(c.ID)
		if err != nil {
			t.Errorf("%s: %v", c.ID, err)
		}
		var ids, live []string
		for _, s := range ever {
			ids = append(ids, s.ID)
			if s.EndedAt.IsZero() {
				live = append(live, s.ID)
			}
		}
		compare(t, "subscriptions of "+c.ID, l.subscribers[p], ids)
		compare(t, "live subscriptions of "+c.ID, l.subscribers[p][max(0, len(ids)-1):], live)
	}
}

// checkAll compares all of the log with what the topics list.
func (l *ledger) checkAll(t *testing.T, s store.Store) {
	err := s.View(t.Context(), func(r store.Reader) error {
		compare(t, "topic of everything", l.log, onTopic(t, r, everything, 0))
		for p := range publishers {
			own := slices.DeleteFunc(slices.Clone(l.log), func(e entry) bool {
				m, err := parseKey(e.Key)
				return err != nil || m.publisher != p
			})
			compare(t, topic(p), own, onTopic(t, r, topic(p), 0))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// onTopic lists what a topic has after a place.
func onTopic(t *testing.T, r store.Reader, topic string, after wake.Seq) []entry {
	const page = 500
	var entries []entry
	for {
		found, err := r.Occurrences(app, []string{topic}, after, page)
		if err != nil {
			t.Errorf("topic %s: %v", topic, err)
		}
		for _, o := range found {
			after = o.Seq
			entries = append(entries, entry{o.Seq, o.Key})
		}
		if len(found) < page {
			return entries
		}
	}
}

func compare[T any](t *testing.T, what string, want, got []T) {
	t.Helper()
	if len(want) == 0 && len(got) == 0 {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
