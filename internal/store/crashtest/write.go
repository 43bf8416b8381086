package crashtest

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

const (
	app        = "crash"
	everything = "everything" // the topic of all occurrences
	publishers = 24
	// subscribeEach is with how many of its occurrences a publisher's conversation changes its subscription.
	subscribeEach = 5
)

// A message is what one publisher sent: its n-th in that round, counted from 1.
type message struct{ round, publisher, n int }

func (m message) key() string { return fmt.Sprintf("%d/%d/%d", m.round, m.publisher, m.n) }

func parseKey(key string) (m message, err error) {
	_, err = fmt.Sscanf(key, "%d/%d/%d", &m.round, &m.publisher, &m.n)
	return m, err
}

func topic(publisher int) string          { return fmt.Sprint("topic/", publisher) }
func conversation(publisher int) string   { return fmt.Sprint("conversation/", publisher) }
func (m message) subscription() string    { return "subscription/" + m.key() }
func (m message) changesSubscriber() bool { return m.n%subscribeEach == 1 }

// data is a payload of a size that differs from one message to the next.
func (m message) data() string {
	return fmt.Sprintf(`{"key":%q,"filler":%q}`, m.key(), strings.Repeat("x", (m.publisher*31+m.n*977)%1500))
}

// Write writes to the store until it is killed or the store fails, and says on out what was acknowledged. Rounds of one
// database are numbered from 1.
func Write(s store.Store, round int, out io.Writer) error {
	if err := prepare(s); err != nil {
		return err
	}
	failed := make(chan error)
	for p := range publishers {
		go func() {
			for n := 1; ; n++ {
				m := message{round, p, n}
				seq, err := send(s, m)
				if err == nil {
					_, err = fmt.Fprintf(out, "%s %d\n", m.key(), seq) // one write, which a pipe takes whole
				}
				if err != nil {
					failed <- fmt.Errorf("message %s: %w", m.key(), err)
					return
				}
			}
		}()
	}
	return <-failed
}

// prepare makes the app and the conversations, unless an earlier round has.
func prepare(s store.Store) error {
	return s.Update(context.Background(), func(t store.Tx) error {
		if _, err := t.App(app); err == nil {
			return nil
		}
		if err := t.CreateApp(wake.App{ID: app}); err != nil {
			return err
		}
		for p := range publishers {
			c := wake.Conversation{ID: conversation(p), App: app, CreatedAt: time.Now(), SeenAt: time.Now()}
			if err := t.PutConversation(c); err != nil {
				return err
			}
		}
		return nil
	})
}

// send does in one transaction what belongs to a message: it goes into the log, the publisher's conversation has received
// it, and with some of them a new subscription takes the place of the old one.
func send(s store.Store, m message) (seq wake.Seq, err error) {
	err = s.Update(context.Background(), func(t store.Tx) error {
		seq, err = t.Append(wake.Occurrence{
			App: app, Kind: wake.KindEvent, Topics: []string{topic(m.publisher), everything}, Data: []byte(m.data()), Key: m.key(),
			At: time.Now(),
		})
		if err != nil {
			return err
		}
		if err := t.Advance(conversation(m.publisher), seq); err != nil || !m.changesSubscriber() {
			return err
		}
		live, err := t.SubscriptionsTo(app, []string{topic(m.publisher)})
		if err != nil {
			return err
		}
		for _, old := range live {
			if _, err := t.EndSubscription(old.ID, seq, time.Now()); err != nil {
				return err
			}
		}
		return t.PutSubscription(wake.Subscription{
			ID: m.subscription(), App: app, Conversation: conversation(m.publisher), Topic: topic(m.publisher), From: seq,
			CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
		})
	})
	return seq, err
}
