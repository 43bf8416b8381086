package connector_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
)

// A replay's frames are acknowledged like others, each for itself, although they lie behind the conversation's position.
func TestAReplayIsAcknowledged(t *testing.T) {
	inBubble(t, func(t *testing.T, l *lab) {
		c := l.conversation("t1")
		url := c.url()
		publish := func(text string) {
			if _, err := l.Core.Publish(t.Context(), l.App, core.Publish{Topics: []string{"news"}, Text: text}); err != nil {
				t.Fatal(err)
			}
		}
		publish("n1")
		publish("n2")
		c.emit("one")
		s := l.connect(url)
		s.ack(s.frame().Delivery)
		synctest.Wait()
		if _, err := l.Core.SubscribeTopic(t.Context(), l.App, codex("t1"), "news", core.TopicOptions{Replay: time.Hour}); err != nil {
			t.Fatal(err)
		}
		publish("n3")
		got := s.frames(3)
		if subjects := []string{got[0].Event.Subject, got[1].Event.Subject, got[2].Event.Subject}; !cmp.Equal(subjects, []string{"n1", "n2", "n3"}) {
			t.Errorf("got %q", subjects)
		}
		s.ack(got[0].Delivery)
		synctest.Wait()
		s.cut()
		again := l.connect(url)
		if diff := cmp.Diff(got[1:], again.frames(2)); diff != "" {
			t.Error(diff)
		}
		again.ack(got[1].Delivery, got[2].Delivery)
		synctest.Wait()
		again.cut()
		c.emit("two")
		if last := l.connect(url).frame(); last.Event.Subject != "two" {
			t.Errorf("came again: %+v", last)
		}
	})
}
