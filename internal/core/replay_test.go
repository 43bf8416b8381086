package core_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

func (b *bench) topic(call wake.Call, topic string, o core.TopicOptions) core.Subscribed {
	b.Helper()
	done, err := b.core.SubscribeTopic(b.Context(), b.app, call, topic, o)
	if err != nil {
		b.Fatal(err)
	}
	return done
}

func (b *bench) publish(text string, topics ...string) core.Emitted {
	b.Helper()
	done, err := b.core.Publish(b.Context(), b.app, core.Publish{Topics: topics, Text: text, Data: json.RawMessage(`{"text":"` + text + `"}`)})
	if err != nil {
		b.Fatal(err)
	}
	return done
}

// inConversation is a call in the conversation that was subscribed.
func inConversation(call wake.Call, done core.Subscribed) wake.Call {
	call.Session = done.Session
	return call
}

func only(text string) wake.Filter { return wake.Filter{"text": json.RawMessage(`"` + text + `"`)} }

func TestAReplayBringsWhatWasPublishedBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.publish("old", "t")
		time.Sleep(time.Minute)
		for _, text := range []string{"1", "2", "3"} {
			b.publish(text, "t")
			b.publish("of another topic", "u")
		}
		tests := map[string]struct {
			o       core.TopicOptions
			at      []string // at once
			then    []string // when 4 and 5 were published
			matched int
		}{
			"none":              {core.TopicOptions{}, nil, []string{"4", "5"}, 2},
			"half a minute":     {core.TopicOptions{Replay: 30 * time.Second}, []string{"1", "2", "3"}, []string{"4", "5"}, 2},
			"beyond the log":    {core.TopicOptions{Replay: 1e6 * time.Hour}, []string{"old", "1", "2", "3"}, []string{"4", "5"}, 2},
			"with a filter":     {core.TopicOptions{Replay: time.Hour, Filter: only("2")}, []string{"2"}, nil, 0},
			"once":              {core.TopicOptions{Replay: 30 * time.Second, Once: true}, []string{"1"}, nil, 0},
			"once, filtered":    {core.TopicOptions{Replay: time.Hour, Once: true, Filter: only("3")}, []string{"3"}, nil, 0},
			"once, too old":     {core.TopicOptions{Replay: 30 * time.Second, Once: true, Filter: only("old")}, nil, nil, 0},
			"once, and not yet": {core.TopicOptions{Replay: time.Hour, Once: true, Filter: only("4")}, nil, []string{"4"}, 1},
		}
		inboxes, want := map[string]*core.Inbox{}, 0
		for name, test := range tests {
			inboxes[name] = b.inbox(b.topic(claude, "t", test.o))
			if got := b.read(inboxes[name]); !cmp.Equal(test.at, got) {
				t.Errorf("%s: at once %q, want %q", name, got, test.at)
			}
			want += test.matched
		}
		if got := b.publish("4", "t").Matched + b.publish("5", "t").Matched; got != want {
			t.Errorf("matched %d, want %d", got, want)
		}
		for name, test := range tests {
			if got := b.read(inboxes[name]); !cmp.Equal(test.then, got) {
				t.Errorf("%s: then %q, want %q", name, got, test.then)
			}
			if ended := test.o.Once && name != "once, too old"; inboxes[name].Finished() != ended {
				t.Errorf("%s: finished is %v", name, !ended)
			}
		}
	})
}

func TestAReplayOnAConversationThatIsPastIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := b.topic(claude, "t", core.TopicOptions{})
	call := inConversation(claude, done)
	b.publish("u1", "u")
	b.publish("t1 and u2", "t", "u")
	b.publish("u3", "u")
	b.publish("t2", "t")
	in := b.inbox(done)
	messages, err := in.Read(t.Context(), 10)
	if err != nil || len(messages) != 2 {
		t.Fatalf("%+v, %v", messages, err)
	}
	if err := in.Settle(t.Context(), receipt(messages...)); err != nil {
		t.Fatal(err)
	}
	b.topic(call, "u", core.TopicOptions{Replay: time.Hour})
	b.publish("u4", "u")
	if got, want := b.read(in), []string{"u1", "u3", "u4"}; !cmp.Equal(want, got) {
		t.Errorf("got %q, want %q: what it has is not brought again", got, want)
	}
	// Nothing of it was settled, so the next reader gets it; and a renewal brings nothing again.
	b.topic(call, "u", core.TopicOptions{Replay: time.Hour})
	next := b.inbox(done)
	messages, err = next.Read(t.Context(), 10)
	if err != nil || len(messages) != 3 {
		t.Fatalf("%+v, %v", messages, err)
	}
	if err := next.Settle(t.Context(), receipt(messages...)); err != nil {
		t.Fatal(err)
	}
	// A subscription of its own time is no reason to bring what an earlier one took.
	if _, err := b.core.UnsubscribeTopic(t.Context(), b.app, call, "u"); err != nil {
		t.Fatal(err)
	}
	b.publish("u5", "u")
	b.topic(call, "u", core.TopicOptions{Replay: time.Hour})
	if got, want := b.read(b.inbox(done)), []string{"u5"}; !cmp.Equal(want, got) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAReplayOfASubscriptionThatWasThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish("1", "t")
	done := b.topic(claude, "t", core.TopicOptions{})
	b.publish("2", "t")
	b.topic(inConversation(claude, done), "t", core.TopicOptions{Replay: time.Hour})
	b.publish("3", "t")
	if got, want := b.read(b.inbox(done)), []string{"1", "2", "3"}; !cmp.Equal(want, got) {
		t.Errorf("got %q, want %q", got, want)
	}
	if status, err := b.core.TopicStatus(t.Context(), b.app, "t"); err != nil || status.Subscriptions != 1 {
		t.Errorf("%+v, %v", status, err)
	}
}

func TestAReplayGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprint(i))
		b.publish(want[i], "t")
	}
	done := b.topic(claude, "t", core.TopicOptions{Replay: time.Hour})
	in := b.inbox(done)
	first, err := in.Read(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Settle(t.Context(), receipt(first[:2]...)); err != nil {
		t.Fatal(err)
	}
	if got := b.read(in); !cmp.Equal(want[3:], got) || in.Finished() {
		t.Errorf("went on with %q", got)
	}
	in.Close()
	second := b.inbox(done)
	messages, err := second.Read(t.Context(), 100)
	if err != nil || len(messages) != 8 || messages[0].ID != first[2].ID || messages[0].Replay != done.Subscription.ID {
		t.Errorf("after the crash %+v, %v", messages, err)
	}
	if err := second.Settle(t.Context(), receipt(messages...)); err != nil {
		t.Fatal(err)
	}
	if got := b.unfinished(done); len(got) > 0 {
		t.Errorf("not finished: %+v", got)
	}
	if got := b.read(b.inbox(done)); got != nil {
		t.Errorf("brought again %q", got)
	}
}

// unfinished are the replays of the conversation that are not finished.
func (b *bench) unfinished(done core.Subscribed) (list []wake.Replay) {
	b.Helper()
	if err := b.store.View(b.Context(), func(r store.Reader) (err error) {
		list, err = r.ReplaysOf(done.Subscription.Conversation)
		return err
	}); err != nil {
		b.Fatal(err)
	}
	return list
}

func TestAReplayIsHeldForWhomNobodyCanWake(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 25 {
		b.publish(fmt.Sprintf("number %d.", i), "t")
	}
	call := wake.Call{Client: "some-client", User: "ada"}
	done := b.topic(call, "t", core.TopicOptions{Replay: time.Hour})
	got := done.Addition
	for _, want := range [][2]string{{"number 0.", "number 19."}, {"number 20.", "number 24."}} {
		if !strings.Contains(got.Text, want[0]) || !strings.Contains(got.Text, want[1]) {
			t.Errorf("without %q: %s", want, got.Text)
		}
		if err := got.Settle(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		var err error
		if got, _, err = b.core.Annotate(t.Context(), b.app, inConversation(call, done)); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(got.Text, "number") {
		t.Errorf("brought again: %s", got.Text)
	}
}

func TestALongReplayIsReadInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const count = 12_000
	b.fill("t", count)
	last := b.topic(claude, "t", core.TopicOptions{Replay: time.Hour, Filter: only(fmt.Sprint(count - 1))})
	if got, want := b.read(b.inbox(last)), []string{fmt.Sprint(count - 1)}; !cmp.Equal(want, got) {
		t.Errorf("got %q, want %q", got, want)
	}
	// What was passed over is not looked at again by the next reader.
	if got := b.unfinished(last); len(got) != 1 || got[0].After < count/2 {
		t.Errorf("left %+v", got)
	}
	nothing := b.topic(claude, "t", core.TopicOptions{Replay: time.Hour, Filter: only("x")})
	if got := b.read(b.inbox(nothing)); got != nil || len(b.unfinished(nothing)) != 0 {
		t.Errorf("got %q, left %+v", got, b.unfinished(nothing))
	}
	once := b.topic(claude, "t", core.TopicOptions{Replay: time.Hour, Once: true, Filter: only("7000")})
	if got := b.read(b.inbox(once)); !cmp.Equal([]string{"7000"}, got) {
		t.Errorf("once got %q", got)
	}
	all, in := 0, b.inbox(b.topic(claude, "t", core.TopicOptions{Replay: time.Hour}))
	for {
		messages, err := in.Read(t.Context(), 500)
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) == 0 {
			break
		}
		for _, m := range messages {
			if m.Text != fmt.Sprint(all) {
				t.Fatalf("%s at place %d", m.Text, all)
			}
			all++
		}
	}
	if all != count {
		t.Errorf("%d of %d came", all, count)
	}
}

// fill publishes 0, 1, 2, … to a topic, in few transactions.
func (b *bench) fill(topic string, count int) {
	b.Helper()
	at := time.Now().UTC()
	for from := 0; from < count; from += 1000 {
		if err := b.store.Update(b.Context(), func(tx store.Tx) error {
			for i := from; i < min(from+1000, count); i++ {
				if _, err := tx.Append(wake.Occurrence{App: b.app.ID, Kind: wake.KindEvent, Topics: []string{topic}, Text: fmt.Sprint(i),
					Data: json.RawMessage(fmt.Sprintf(`{"text":"%d"}`, i)), At: at}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestARefusedReplayLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := b.topic(claude, "t", core.TopicOptions{})
	_, err := b.core.SubscribeTopic(t.Context(), b.app, inConversation(claude, done), "u/bob/mail", core.TopicOptions{Replay: time.Hour, Once: true})
	b.refused(err, refusal.PrivateTopic)
	if err := b.store.View(t.Context(), func(r store.Reader) error {
		subs, err := r.SubscriptionsEver(done.Subscription.Conversation)
		if len(subs) != 1 {
			t.Errorf("%+v", subs)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
