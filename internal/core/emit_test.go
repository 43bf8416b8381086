package core_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

var claude = wake.Call{Client: "claude-code", User: "ada", Tool: "watch_crawl"}

func TestEmitMatchesEachConversationOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if done := b.emit("j1", "1"); done.Matched != 0 || done.Duplicate {
		t.Errorf("nobody is subscribed, and it matched %+v", done)
	}
	first := b.subscribe(claude, "j1")
	b.subscribe(claude, "j1")
	b.subscribe(claude, "j2")
	if done := b.emit("j1", "2"); done.Matched != 2 {
		t.Errorf("matched %d, want both conversations", done.Matched)
	}
	same := claude
	same.Session = first.Session
	if again := b.subscribe(same, "j1"); again.Created || again.Subscription.ID != first.Subscription.ID {
		t.Errorf("subscribing again made another: %+v", again.Subscription)
	}
	if done := b.emit("j1", "3"); done.Matched != 2 {
		t.Errorf("after a renewal it matched %d", done.Matched)
	}
	if done := b.emit("j2", "1"); done.Matched != 1 {
		t.Errorf("the other job matched %d", done.Matched)
	}
}

func TestEmitRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good := core.Emit{Name: "crawl.finished", Arguments: args("j"), Payload: json.RawMessage(`{"pages":1}`), Text: "t"}
	for name, test := range map[string]struct {
		change func(*core.Emit)
		code   refusal.Code
	}{
		"unknown event": {func(e *core.Emit) { e.Name = "no.such" }, refusal.UnknownEvent},
		"bad arguments": {func(e *core.Emit) { e.Arguments = json.RawMessage(`{}`) }, refusal.BadArguments},
		"bad payload":   {func(e *core.Emit) { e.Payload = json.RawMessage(`{"pages":"x"}`) }, refusal.BadPayload},
		"no payload":    {func(e *core.Emit) { e.Payload = nil }, refusal.BadPayload},
		"payload over 256 KiB": {func(e *core.Emit) {
			e.Payload = json.RawMessage(`{"pages":1,"x":"` + strings.Repeat("x", wake.MaxPayload) + `"}`)
		}, refusal.BadPayload},
		"text over its limit":  {func(e *core.Emit) { e.Text = strings.Repeat("x", wake.MaxText+1) }, refusal.BadRequest},
		"long id":              {func(e *core.Emit) { e.ID = strings.Repeat("x", wake.MaxKey+1) }, refusal.BadRequest},
		"id with a newline":    {func(e *core.Emit) { e.ID = "a\n" }, refusal.BadRequest},
		"to on a public event": {func(e *core.Emit) { e.To = "ada" }, refusal.BadArguments},
		"personal without to":  {func(e *core.Emit) { e.Name, e.Arguments = "your.turn", json.RawMessage(`{"game":"g"}`) }, refusal.BadArguments},
		"personal with a bad to": {func(e *core.Emit) {
			e.Name, e.Arguments, e.To = "your.turn", json.RawMessage(`{"game":"g"}`), "a\x00"
		}, refusal.BadRequest},
	} {
		e := good
		test.change(&e)
		if _, err := b.core.Emit(t.Context(), b.app, e); !refusal.Is(err, test.code) {
			t.Errorf("%s: %v, want %s", name, err, test.code)
		}
	}
	if _, err := b.core.Emit(t.Context(), b.app, good); err != nil {
		t.Error(err)
	}
}

func TestEmitIDCountsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.inbox(b.subscribe(claude, "j1"))
	e := core.Emit{Name: "crawl.finished", Arguments: args("j1"), Payload: json.RawMessage(`{"pages":1}`), Text: "t", ID: "once"}
	var fresh atomic.Int32
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			done, err := b.core.Emit(t.Context(), b.app, e)
			if err != nil || done.Matched != 1 {
				t.Errorf("%+v, %v", done, err)
			}
			if !done.Duplicate {
				fresh.Add(1)
			}
		})
	}
	group.Wait()
	if fresh.Load() != 1 {
		t.Errorf("%d of 50 were no duplicates", fresh.Load())
	}
	if got := b.read(in); len(got) != 1 {
		t.Errorf("it was received %d times", len(got))
	}
	// The id is one event's and one app's.
	e.Name, e.Arguments = "site.updated", json.RawMessage(`{"site":"s"}`)
	if done, err := b.core.Emit(t.Context(), b.app, e); err != nil || done.Duplicate {
		t.Errorf("another event: %+v, %v", done, err)
	}
	other := b.newApp("other")
	if done, err := b.core.Emit(t.Context(), other, e); err != nil || done.Duplicate {
		t.Errorf("another app: %+v, %v", done, err)
	}
}

func TestPersonalEventsReachTheirUserOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	game := json.RawMessage(`{"game":"g"}`)
	subscribe := func(user string) core.Subscribed {
		done, err := b.core.SubscribeEvent(t.Context(), b.app, wake.Call{Client: "claude-code", User: user}, "your.turn", game, false)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	ada, bob := b.inbox(subscribe("ada")), b.inbox(subscribe("bob"))
	done, err := b.core.Emit(t.Context(), b.app, core.Emit{Name: "your.turn", Arguments: game, Payload: json.RawMessage(`{}`), To: "ada"})
	if err != nil || done.Matched != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := b.read(ada); !cmp.Equal(got, []string{"your.turn"}) {
		t.Errorf("ada got %q", got)
	}
	if got := b.read(bob); len(got) != 0 {
		t.Errorf("bob got %q", got)
	}
	_, err = b.core.SubscribeEvent(t.Context(), b.app, wake.Call{Client: "claude-code"}, "your.turn", game, false)
	b.refused(err, refusal.BadArguments)
}

func TestFilterOfAnOptionalArgument(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, arguments := range []string{`{"job":"j","level":"high"}`, `{"job":"j"}`} {
		if _, err := b.core.SubscribeEvent(t.Context(), b.app, claude, "crawl.finished", json.RawMessage(arguments), false); err != nil {
			t.Fatal(err)
		}
	}
	for level, want := range map[string]int{"high": 2, "low": 1, "highest": 1, "": 1} {
		done, err := b.core.Emit(t.Context(), b.app, core.Emit{Name: "crawl.finished", Arguments: args("j"),
			Payload: json.RawMessage(fmt.Sprintf(`{"pages":1,"level":%q}`, level))})
		if err != nil || done.Matched != want {
			t.Errorf("level %q matched %d, %v; want %d", level, done.Matched, err, want)
		}
	}
}

func TestPublishToSeveralTopicsReachesAConversationOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, err := b.core.SubscribeTopic(t.Context(), b.app, claude, "one", core.TopicOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same := claude
	same.Session = first.Session
	if _, err := b.core.SubscribeTopic(t.Context(), b.app, same, "two", core.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	in := b.inbox(first)
	done, err := b.core.Publish(t.Context(), b.app, core.Publish{Topics: []string{"two", "one", "one"}, Text: "hi"})
	if err != nil || done.Matched != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := b.read(in); !cmp.Equal(got, []string{"hi"}) {
		t.Errorf("got %q", got)
	}
	for name, p := range map[string]core.Publish{
		"no topics": {Text: "t"}, "no text": {Topics: []string{"x"}}, "a bad topic": {Topics: []string{"x", "a b"}, Text: "t"},
		"an event's topic": {Topics: []string{"ev/crawl.finished/j"}, Text: "t"},
	} {
		if _, err := b.core.Publish(t.Context(), b.app, p); !refusal.Is(err, refusal.BadRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
