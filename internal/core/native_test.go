package core_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

var native = wake.Call{Client: "native-test", User: "ada"}

func (b *bench) site(site, pages string) core.Emitted {
	b.Helper()
	done, err := b.core.Emit(b.Context(), b.app, core.Emit{Name: "site.updated", Arguments: json.RawMessage(`{"site":"` + site + `"}`),
		Payload: json.RawMessage(`{"pages":` + pages + `}`), Text: site + " changed"})
	if err != nil {
		b.Fatal(err)
	}
	return done
}

func siteRequest(call wake.Call) core.Native {
	return core.Native{Call: call, Name: "site.updated", Arguments: json.RawMessage(`{"site":"s"}`)}
}

func (b *bench) poll(cursor *string) core.Polled {
	b.Helper()
	got, err := b.core.Poll(b.Context(), b.app, siteRequest(wake.Call{}), core.Poll{Cursor: cursor})
	if err != nil {
		b.Fatal(err)
	}
	return got
}

func data(p core.Polled) (list []string) {
	for _, e := range p.Events {
		list = append(list, string(e.Data))
	}
	return list
}

func TestPollFollowsItsCursor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.site("s", "0")
	start := b.poll(nil)
	if len(start.Events) != 0 || start.Truncated || start.HasMore {
		t.Errorf("from now on: %+v", start)
	}
	for i := 1; i <= 3; i++ {
		b.site("s", fmt.Sprint(i))
		b.site("other", "99")
	}
	all := b.poll(&start.Cursor)
	if want := []string{`{"pages":1}`, `{"pages":2}`, `{"pages":3}`}; !cmp.Equal(want, data(all)) || all.HasMore {
		t.Errorf("%+v", all)
	}
	if again := b.poll(&start.Cursor); !cmp.Equal(all.Events, again.Events) {
		t.Errorf("the same cursor brought something else: %s", cmp.Diff(all.Events, again.Events))
	}
	if rest := b.poll(&all.Cursor); len(rest.Events) != 0 || rest.Truncated {
		t.Errorf("after the end: %+v", rest)
	}
	var stepped []string
	for cursor, more := start.Cursor, true; more; {
		one, err := b.core.Poll(t.Context(), b.app, siteRequest(native), core.Poll{Cursor: &cursor, MaxEvents: 1})
		if err != nil || len(one.Events) > 1 {
			t.Fatalf("%+v, %v", one, err)
		}
		stepped, cursor, more = append(stepped, data(one)...), one.Cursor, one.HasMore
	}
	if !cmp.Equal(data(all), stepped) {
		t.Errorf("one by one: %q", stepped)
	}
	for _, garbage := range []string{"", "garbage", "c1.aaaa.0", start.Cursor + "x", "c1."} {
		got := b.poll(&garbage)
		if !got.Truncated || len(got.Events) != 0 || b.poll(&got.Cursor).Truncated {
			t.Errorf("%q: %+v", garbage, got)
		}
	}
}

func TestPollMaxAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		cursor := b.poll(nil).Cursor
		b.site("s", "1")
		time.Sleep(2 * time.Second)
		b.site("s", "2")
		got, err := b.core.Poll(t.Context(), b.app, siteRequest(native), core.Poll{Cursor: &cursor, MaxAge: time.Second})
		if err != nil || !got.Truncated || !cmp.Equal(data(got), []string{`{"pages":2}`}) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestWhoMayPoll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	crawl := core.Native{Call: native, Name: "crawl.finished", Arguments: args("j")}
	turn := core.Native{Call: native, Name: "your.turn", Arguments: json.RawMessage(`{"game":"g"}`)}
	nobody := turn
	nobody.Call.User = ""
	no := siteRequest(native)
	no.Refused = true
	for name, test := range map[string]struct {
		ask  core.Native
		code refusal.Code // empty: allowed
	}{
		"public, nobody":        {siteRequest(wake.Call{}), ""},
		"public, refused":       {no, refusal.Forbidden},
		"tools only":            {crawl, refusal.Forbidden},
		"not said, signed in":   {turn, ""},
		"not said, nobody":      {nobody, refusal.Forbidden},
		"unknown event":         {core.Native{Call: native, Name: "no.such"}, refusal.UnknownEvent},
		"bad arguments":         {core.Native{Call: native, Name: "site.updated", Arguments: json.RawMessage(`{}`)}, refusal.BadArguments},
		"a voucher of no worth": {core.Native{Call: native, Name: "crawl.finished", Arguments: json.RawMessage(`{"job":"j","wakeshift_voucher":"wsv_x"}`)}, refusal.Forbidden},
		"a voucher of no type":  {core.Native{Call: native, Name: "crawl.finished", Arguments: json.RawMessage(`{"job":"j","wakeshift_voucher":7}`)}, refusal.BadArguments},
	} {
		_, err := b.core.Poll(t.Context(), b.app, test.ask, core.Poll{})
		if test.code == "" && err != nil || test.code != "" && !refusal.Is(err, test.code) {
			t.Errorf("%s: %v, want %q", name, err, test.code)
		}
	}
}

var chatGPT = wake.Call{Client: "openai-mcp"}

func voucherIn(t *testing.T, text string) string {
	t.Helper()
	voucher := regexp.MustCompile(`wsv_[a-z2-7]{32}`).FindString(text)
	if voucher == "" {
		t.Fatalf("no voucher in %q", text)
	}
	return voucher
}

func withVoucher(job, voucher string) core.Native {
	return core.Native{Call: chatGPT, Name: "crawl.finished", Arguments: json.RawMessage(`{"job":"` + job + `","wakeshift_voucher":"` + voucher + `"}`)}
}

var hook = core.HookRequest{URL: "https://hook.test/x", Secret: "whsec_one"}

func TestAVoucherLetsChatGPTSubscribe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		done := b.subscribe(chatGPT, "j9")
		voucher := voucherIn(t, done.Addition.Text)
		b.emit("j9", "1") // while it has not subscribed yet
		for name, ask := range map[string]core.Native{
			"none":            {Call: chatGPT, Name: "crawl.finished", Arguments: args("j9")},
			"other arguments": withVoucher("j10", voucher),
			"another user":    {Call: wake.Call{Client: "openai-mcp", User: "bob"}, Name: "crawl.finished", Arguments: withVoucher("j9", voucher).Arguments},
		} {
			_, err := b.core.SubscribeWebhook(t.Context(), b.app, ask, hook)
			if !refusal.Is(err, refusal.Forbidden) {
				t.Errorf("%s: %v", name, err)
			}
		}
		other := b.newApp("other")
		_, err := b.core.SubscribeWebhook(t.Context(), other, withVoucher("j9", voucher), hook)
		b.refused(err, refusal.Forbidden)

		granted, err := b.core.SubscribeWebhook(t.Context(), b.app, withVoucher("j9", voucher), hook)
		if err != nil {
			t.Fatal(err)
		}
		if done := b.emit("j9", "4"); done.Matched != 1 {
			t.Errorf("matched %d, want the webhook alone", done.Matched)
		}
		synctest.Wait()
		var bodies []string
		for _, sent := range b.hooks.deliveries() {
			var o struct{ Data json.RawMessage }
			if err := json.Unmarshal([]byte(sent.Body), &o); err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, string(o.Data))
			if sent.Target.Subscription != granted.ID || sent.Target.URL != hook.URL {
				t.Errorf("sent to %+v", sent.Target)
			}
		}
		slices.Sort(bodies) // webhooks promise no order
		if want := []string{`{"pages":1}`, `{"pages":4}`}; !cmp.Equal(want, bodies) {
			t.Errorf("delivered %q, want %q", bodies, want)
		}
		again, err := b.core.SubscribeWebhook(t.Context(), b.app, withVoucher("j9", voucher), hook)
		if err != nil || again.ID != granted.ID || again.Status == nil || !again.Status.Active {
			t.Errorf("refresh: %+v, %v", again, err)
		}
		if b.hooks.verified != 1 {
			t.Errorf("verified %d times", b.hooks.verified)
		}
	})
}
