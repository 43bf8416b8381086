package core_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

func TestAMessageForOneSubscription(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := b.topic(claude, "t", core.TopicOptions{Filter: only("x"), Once: true})
	other := b.inbox(b.topic(claude, "t", core.TopicOptions{}))
	b.read(other)
	id := done.Subscription.ID
	send := func(text, key string) string {
		status, err := b.core.Send(t.Context(), b.app, id, core.Send{Text: text, ID: key})
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	got := []string{send("one", "k")}
	in := b.inbox(done)
	got = append(got, send("two", ""), send("one again", "k"))
	if status, err := b.core.Subscription(t.Context(), b.app, id); err != nil || status.Status != core.StatusActive || status.Via != core.ViaStream {
		t.Errorf("%+v, %v", status, err)
	}
	if texts := b.read(in); !cmp.Equal([]string{"one", "two"}, texts) {
		t.Errorf("got %q", texts)
	}
	if texts := b.read(other); texts != nil {
		t.Errorf("another subscription got %q", texts)
	}
	// A once subscription waits on: what was sent is not what it waits for.
	for i, want := range []bool{true, false} {
		if ended, err := b.core.EndSubscription(t.Context(), b.app, id); err != nil || ended != want {
			t.Errorf("time %d: %v, %v", i+1, ended, err)
		}
	}
	got = append(got, send("late", ""))
	if want := []string{core.SentQueued, core.SentDelivered, core.SentDelivered, core.SentClosed}; !cmp.Equal(want, got) {
		t.Errorf("sent %q, want %q", got, want)
	}
	messages, err := in.Read(t.Context(), 10)
	if err != nil || len(messages) != 1 || messages[0].Kind != wake.KindEnded || !in.Finished() {
		t.Errorf("told %+v, %v, finished %v", messages, err, in.Finished())
	}
	_, err = b.core.Send(t.Context(), b.newApp("other"), id, core.Send{Text: "t"})
	b.refused(err, refusal.UnknownSubscription)
}
