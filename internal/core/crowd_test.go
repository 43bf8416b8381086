package core_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/core/coretest"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// gather makes that many subscriptions to a topic, of a few conversations, changed as asked.
func gather(t testing.TB, db store.Store, app, topic string, count int, change func(*wake.Subscription)) {
	t.Helper()
	at := time.Now().UTC()
	for from := 0; from < count; from += 5000 {
		if err := db.Update(t.Context(), func(tx store.Tx) error {
			conversation := fmt.Sprintf("%s-%d", topic, from)
			if err := tx.PutConversation(wake.Conversation{ID: conversation, App: app, CreatedAt: at, SeenAt: at}); err != nil {
				return err
			}
			for i := from; i < min(from+5000, count); i++ {
				s := wake.Subscription{ID: fmt.Sprintf("sub_%s_%d", topic, i), App: app, Conversation: conversation, Topic: topic,
					CreatedAt: at, ExpiresAt: at.Add(time.Hour)}
				change(&s)
				if err := tx.PutSubscription(s); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestATopicWithACrowd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const plain, once = store.MostListed + 100, 700
	gather(t, b.store, b.app.ID, "t", plain, func(*wake.Subscription) {})
	gather(t, b.store, b.app.ID, "o", once, func(s *wake.Subscription) { s.Topic, s.Once = "t", true })
	filtered := b.inbox(b.topic(claude, "t", core.TopicOptions{Filter: only("second")}))
	last := b.inbox(b.topic(claude, "t", core.TopicOptions{Once: true}))
	b.topic(claude, "t", core.TopicOptions{Once: true, Filter: only("third")})

	matched := []int{b.publish("first", "t").Matched, b.publish("second", "t", "u").Matched, b.publish("third", "t").Matched, b.publish("fourth", "u").Matched}
	if want := []int{plain + once + 1, plain + 1, plain + 1, 0}; !cmp.Equal(want, matched) {
		t.Errorf("matched %d, want %d", matched, want)
	}
	if got := b.read(last); !cmp.Equal([]string{"first"}, got) || !last.Finished() {
		t.Errorf("a once subscription got %q, finished %v", got, last.Finished())
	}
	if got := b.read(filtered); !cmp.Equal([]string{"second"}, got) {
		t.Errorf("one with a filter got %q", got)
	}
	if status, err := b.core.TopicStatus(t.Context(), b.app, "t"); err != nil || status.Subscriptions != plain+1 || status.Via["stream"] != 1 {
		t.Errorf("status %+v, %v", status, err)
	}
	batch := core.Publish{Topics: []string{"t"}, Text: "again", ID: "id"}
	for _, duplicate := range []bool{false, true} {
		if done, err := b.core.Publish(t.Context(), b.app, batch); err != nil || done.Duplicate != duplicate || done.Matched != plain {
			t.Errorf("%+v, %v", done, err)
		}
	}
	if closed, err := b.core.CloseTopic(t.Context(), b.app, "t"); err != nil || closed != plain+1 {
		t.Errorf("closed %d, %v", closed, err)
	}
	if got := b.publish("late", "t").Matched; got != 0 {
		t.Errorf("matched %d after it was closed", got)
	}
	if got := b.read(filtered); !cmp.Equal([]string{"Your subscription to the topic t ended: the app crawler closed it."}, got) || !filtered.Finished() {
		t.Errorf("told %q", got)
	}
}

func TestACrowdIsNoPlaceForWhatIsDeletedOnDelivery(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fleeting := strings.Replace(manifest, `"personal":true,`, `"delete_on_delivery":true,`, 1)
	if _, err := b.core.PutManifest(t.Context(), b.app, json.RawMessage(fleeting)); err != nil {
		t.Fatal(err)
	}
	gather(t, b.store, b.app.ID, "ev/your.turn/g", store.MostListed+1, func(s *wake.Subscription) { s.Event = "your.turn" })
	_, err := b.core.Emit(t.Context(), b.app, core.Emit{Name: "your.turn", Arguments: json.RawMessage(`{"game":"g"}`), Payload: json.RawMessage(`{}`)})
	b.refused(err, refusal.SubscriptionLimit)
}

func TestAConversationWithTenThousandTopics(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := b.topic(claude, "first", core.TopicOptions{})
	b.topics(done.Subscription.Conversation, wake.MaxSubscription-1)
	in := b.inbox(done)
	b.read(in)
	var want []string
	for i := range 20 {
		text := fmt.Sprint(i)
		want = append(want, text)
		if got := b.publish(text, fmt.Sprintf("many-%d", i*499)); got.Matched != 1 {
			t.Errorf("matched %d", got.Matched)
		}
	}
	if got := b.read(in); !cmp.Equal(want, got) {
		t.Errorf("got %q", got)
	}
	if ended, err := b.core.UnsubscribeTopic(t.Context(), b.app, inConversation(claude, done), ""); err != nil || ended != wake.MaxSubscription {
		t.Errorf("ended %d, %v", ended, err)
	}
}

// topics subscribes a conversation to that many.
func (b *bench) topics(conversation string, count int) {
	b.Helper()
	n := 0
	gather(b, b.store, b.app.ID, "many", count, func(s *wake.Subscription) {
		s.Conversation, s.Topic = conversation, fmt.Sprintf("many-%d", n)
		n++
	})
}

// BenchmarkCrowd is a publish to a topic with very many subscriptions that take everything, and how long another app's publish has
// to wait meanwhile. The setup for a million takes minutes.
func BenchmarkCrowd(b *testing.B) {
	for _, count := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("subscriptions=%d", count), func(b *testing.B) {
			var db store.Store
			bench := coretest.New(b, func(o *core.Options) { db = o.Store })
			gather(b, db, bench.App.ID, "t", count, func(*wake.Subscription) {})
			other, _ := bench.NewApp("other")
			var longest time.Duration
			for b.Loop() {
				var meanwhile sync.WaitGroup
				meanwhile.Go(func() {
					begun := time.Now()
					publishTo(b, bench.Core, other, "x")
					longest = max(longest, time.Since(begun))
				})
				if matched := publishTo(b, bench.Core, bench.App, "t"); matched != count {
					b.Fatalf("matched %d", matched)
				}
				meanwhile.Wait()
			}
			b.ReportAllocs()
			b.ReportMetric(longest.Seconds()*1000, "ms-another-waits")
			begun := time.Now()
			if status, err := bench.Core.TopicStatus(b.Context(), bench.App, "t"); err != nil || status.Subscriptions != count {
				b.Fatalf("%+v, %v", status, err)
			}
			b.ReportMetric(time.Since(begun).Seconds()*1000, "ms/status")
		})
	}
}

func publishTo(b *testing.B, c *core.Core, app wake.App, topic string) int {
	done, err := c.Publish(b.Context(), app, core.Publish{Topics: []string{topic}, Text: "text"})
	if err != nil {
		b.Error(err)
	}
	return done.Matched
}
