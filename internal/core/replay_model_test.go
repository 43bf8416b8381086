package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Whatever one conversation subscribes to, ends and replays, in whatever order: everything it is owed comes exactly once as long
// as it settles what it read.
func TestReplaysBringEverythingOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { (&replayModel{bench: setup(t), rand: rand.New(rand.NewPCG(seed, 4))}).run() })
		})
	}
}

// A replayModel does at random what a conversation may, and works out what it is owed.
type replayModel struct {
	*bench
	rand      *rand.Rand
	call      wake.Call
	done      core.Subscribed
	in        *core.Inbox
	published []publication
	live      map[string]bool
	replayed  map[string]bool // live ones that had their replay
	owed, got []string
}

type publication struct {
	text   string
	topics []string
	at     time.Time
	owed   bool
}

func (m *replayModel) run() {
	topics := []string{"a", "b", "c"}
	m.live, m.replayed = map[string]bool{"first": true}, map[string]bool{}
	m.call = claude
	m.done = m.topic(claude, "first", core.TopicOptions{})
	m.call.Session = m.done.Session
	m.in = m.inbox(m.done)
	for range 120 {
		time.Sleep(time.Second)
		topic := topics[m.rand.IntN(len(topics))]
		switch m.rand.IntN(7) {
		case 0, 1, 2:
			m.say(slices.Compact(slices.Sorted(slices.Values([]string{topic, topics[m.rand.IntN(len(topics))]}))))
		case 3:
			m.listen(topic, time.Duration(m.rand.IntN(40))*time.Second)
		case 4:
			if _, err := m.core.UnsubscribeTopic(m.Context(), m.app, m.call, topic); err != nil {
				m.Fatal(err)
			}
			m.live[topic], m.replayed[topic] = false, false
		case 5:
			m.receive(1 + m.rand.IntN(5))
		case 6: // another connection
			m.in.Close()
			m.in = m.inbox(m.done)
		}
	}
	for m.receive(10) > 0 {
	}
	slices.Sort(m.owed)
	slices.Sort(m.got)
	if diff := cmp.Diff(m.owed, m.got); diff != "" {
		m.Errorf("owed and received differ (-owed +received):\n%s", diff)
	}
}

func (m *replayModel) say(topics []string) {
	p := publication{text: fmt.Sprintf("%03d", len(m.published)), topics: topics, at: time.Now()}
	m.publish(p.text, topics...)
	p.owed = slices.ContainsFunc(topics, func(topic string) bool { return m.live[topic] })
	if p.owed {
		m.owed = append(m.owed, p.text)
	}
	m.published = append(m.published, p)
}

func (m *replayModel) listen(topic string, replay time.Duration) {
	m.topic(m.call, topic, core.TopicOptions{Replay: replay})
	begin := time.Now().Add(-replay)
	for i, p := range m.published {
		if replay > 0 && !m.replayed[topic] && !p.owed && !p.at.Before(begin) && slices.Contains(p.topics, topic) {
			m.published[i].owed = true
			m.owed = append(m.owed, p.text)
		}
	}
	// A renewal's replay counts only when there is something before the subscription's own time.
	m.live[topic] = true
	m.replayed[topic] = m.replayed[topic] || replay > 0 && m.hasReplay(topic)
}

func (m *replayModel) hasReplay(topic string) (has bool) {
	if err := m.store.View(m.Context(), func(r store.Reader) error {
		s, err := r.SubscriptionOf(m.done.Subscription.Conversation, topic, "", nil)
		if err != nil {
			return err
		}
		_, err = r.Replay(s.ID)
		has = err == nil
		return nil
	}); err != nil {
		m.Fatal(err)
	}
	return has
}

func (m *replayModel) receive(limit int) int {
	messages, err := m.in.Read(m.Context(), limit)
	if err != nil {
		m.Fatal(err)
	}
	for _, message := range messages {
		m.got = append(m.got, message.Text)
	}
	if err := m.in.Settle(m.Context(), receipt(messages...)); err != nil {
		m.Fatal(err)
	}
	return len(messages)
}
