package core_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// code emits the event whose content goes with its delivery.
func (b *bench) code(job, note string) core.Emitted {
	b.Helper()
	done, err := b.core.Emit(b.Context(), b.app, core.Emit{Name: "code.sent", Arguments: args(job), Text: "Your code: " + note,
		Payload: json.RawMessage(`{"code":"` + note + `"}`), ID: note})
	if err != nil {
		b.Fatal(err)
	}
	return done
}

func (b *bench) subscribeCode(call wake.Call, job string, once bool) core.Subscribed {
	b.Helper()
	done, err := b.core.SubscribeEvent(b.Context(), b.app, call, "code.sent", args(job), once)
	if err != nil {
		b.Fatal(err)
	}
	return done
}

// gone fails the test unless a text is in none of the database's files, after the scrubbing.
func (b *bench) gone(text string) {
	b.Helper()
	if err := b.core.Scrub(b.Context()); err != nil {
		b.Fatal(err)
	}
	if files := b.found(text); len(files) > 0 {
		b.Errorf("%q is still in %v", text, files)
	}
}

// kept fails the test when a text is in none of the database's files.
func (b *bench) kept(text string) {
	b.Helper()
	if err := b.core.Scrub(b.Context()); err != nil {
		b.Fatal(err)
	}
	if len(b.found(text)) == 0 {
		b.Errorf("%q is gone", text)
	}
}

// deliver reads and settles what a conversation is owed.
func (b *bench) deliver(done core.Subscribed) []string {
	b.Helper()
	in := b.inbox(done)
	messages, err := in.Read(b.Context(), 100)
	if err != nil {
		b.Fatal(err)
	}
	var texts []string
	for _, m := range messages {
		texts = append(texts, m.Text)
	}
	if err := in.Settle(b.Context(), receipt(messages...)); err != nil {
		b.Fatal(err)
	}
	return texts
}

func TestContentGoesWithItsLastDelivery(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := b.subscribeCode(claude, "j", true), b.subscribeCode(wake.Call{Client: "claude-code", User: "bob"}, "j", false)
	if done := b.code("j", "canary-1"); done.Matched != 2 {
		t.Fatalf("matched %d", done.Matched)
	}
	b.kept("canary-1\"")
	if diff := cmp.Diff([]string{"Your code: canary-1"}, b.deliver(one)); diff != "" {
		t.Error(diff)
	}
	b.kept("canary-1\"")
	if diff := cmp.Diff([]string{"Your code: canary-1"}, b.deliver(two)); diff != "" {
		t.Error(diff)
	}
	b.gone("canary-1\"")
	b.gone("Your code")
	// The fact remains, so that a repeated emit counts once and later events come as ever.
	if again := b.code("j", "canary-1"); !again.Duplicate || again.Matched != 2 {
		t.Errorf("%+v", again)
	}
	b.code("j", "canary-2")
	if diff := cmp.Diff([]string{"Your code: canary-2"}, b.deliver(two)); diff != "" {
		t.Error(diff)
	}
}

func TestContentThatNobodyWaitsForIsNotWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.code("j", "canary")
	done := b.subscribeCode(claude, "j", false)
	if files := b.found("Your code"); len(files) > 0 {
		t.Errorf("it is in %v", files)
	}
	if got := b.deliver(done); len(got) > 0 {
		t.Errorf("delivered %q", got)
	}
	if again := b.code("j", "canary"); !again.Duplicate {
		t.Error("the fact was not kept")
	}
}

func TestContentGoesWithItsSubscription(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := b.subscribeCode(claude, "j", false)
	b.code("j", "canary")
	call := claude
	call.Session = done.Session
	if ended, err := b.core.UnsubscribeEvent(t.Context(), b.app, call, "code.sent", args("j")); err != nil || !ended {
		t.Fatal(ended, err)
	}
	b.gone("Your code")
	if got := b.deliver(done); len(got) > 0 {
		t.Errorf("delivered %q", got)
	}
}

func TestContentGoesWhenItsSubscriptionExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		sub := b.subscribeCode(claude, "j", false).Subscription
		sub.ExpiresAt = time.Now().Add(10 * time.Minute)
		if err := b.store.Update(t.Context(), func(tx store.Tx) error { return tx.PutSubscription(sub) }); err != nil {
			t.Fatal(err)
		}
		b.code("j", "canary")
		time.Sleep(9 * time.Minute)
		b.kept("Your code")
		time.Sleep(3 * time.Minute)
		b.gone("Your code")
	})
}

func TestContentGoesWithItsWebhookDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		request := siteRequest(native)
		request.Name, request.Arguments = "code.sent", args("j")
		if _, err := b.core.SubscribeWebhook(t.Context(), b.app, request, hook); err != nil {
			t.Fatal(err)
		}
		b.hooks.fail(core.HookResult{Retry: true, Reason: "http_5xx"})
		b.code("j", "canary")
		synctest.Wait()
		b.kept("Your code")
		time.Sleep(time.Minute)
		if sent := b.hooks.deliveries(); len(sent) != 2 || sent[1].Body != sent[0].Body {
			t.Errorf("sent %+v", sent)
		}
		b.gone("Your code")
	})
}

// What a conversation was owed when it is claimed by its voucher comes by the webhook, and goes with that delivery.
func TestAClaimKeepsContentForTheWebhook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		done := b.subscribeCode(chatGPT, "j", false)
		b.code("j", "canary")
		request := siteRequest(chatGPT)
		request.Name, request.Arguments = "code.sent", json.RawMessage(`{"job":"j","wakeshift_voucher":"`+voucherIn(t, done.Addition.Text)+`"}`)
		if _, err := b.core.SubscribeWebhook(t.Context(), b.app, request, hook); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if sent := b.hooks.deliveries(); len(sent) != 1 || !strings.Contains(sent[0].Body, "Your code: canary") {
			t.Errorf("sent %+v", sent)
		}
		b.gone("Your code")
	})
}

// A cursor from before content was erased is good: what was erased is passed over.
func TestPollingPassesOverErasedContent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	request := siteRequest(native)
	request.Name, request.Arguments = "code.sent", args("j")
	poll := func(cursor *string) core.Polled {
		t.Helper()
		polled, err := b.core.Poll(t.Context(), b.app, request, core.Poll{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		return polled
	}
	start := poll(nil).Cursor
	done := b.subscribeCode(claude, "j", false)
	b.code("j", "canary")
	if got := poll(&start); len(got.Events) != 1 {
		t.Errorf("before it is delivered: %+v", got)
	}
	b.deliver(done)
	if got := poll(&start); len(got.Events) != 0 || got.Truncated || got.HasMore || got.Cursor == start {
		t.Errorf("after: %+v", got)
	}
}
