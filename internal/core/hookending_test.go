package core_test

import (
	"encoding/json"
	"errors"
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

// What the manifest of every test says of the event that webhooks are subscribed to.
const (
	siteArguments = `{"site":{"type":"string"}},"required":["site"]}`
	sitePayload   = siteArguments + `,
  "payload":{"type":"object","properties":{"pages":{"type":"integer"}},"required":["pages"]}`
)

// changed is the manifest with some of its text replaced, which must be there once.
func changed(t *testing.T, old, with string) string {
	t.Helper()
	if strings.Count(manifest, old) != 1 {
		t.Fatalf("%q is there %d times", old, strings.Count(manifest, old))
	}
	return strings.Replace(manifest, old, with, 1)
}

// A wireError is what the tests look at of the error in a notice.
type wireError struct {
	Code int
	Data map[string]any
}

// ended lists the notices of their end among what was sent to an address.
func (b *bench) ended(url string) (notices []sentHook) {
	for _, sent := range b.to(url) {
		if strings.HasPrefix(sent.ID, "msg_terminated_") {
			notices = append(notices, sent)
		}
	}
	return notices
}

// errorIn is the error in a notice that says that a webhook has ended.
func (b *bench) errorIn(sent sentHook) wireError {
	b.Helper()
	var body struct {
		Type  string
		Error wireError
	}
	err := json.Unmarshal([]byte(sent.Body), &body)
	if err != nil || body.Type != "terminated" {
		b.Errorf("%s: %v", sent.Body, err)
	}
	return body.Error
}

// isKept reports whether the store has a webhook, ended or not.
func (b *bench) isKept(id string) bool {
	b.Helper()
	err := b.store.View(b.Context(), func(r store.Reader) error {
		_, err := r.Webhook(id)
		return err
	})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		b.Fatal(err)
	}
	return err == nil
}

// unknown fails the test unless no list has the webhook.
func (b *bench) unknown(id string) {
	b.Helper()
	_, err := b.core.Subscription(b.Context(), b.app, id)
	b.refused(err, refusal.UnknownSubscription)
	if _, hooks, err := b.core.Standing(b.Context(), b.app.ID); err != nil || len(hooks) != 0 {
		b.Errorf("the app has %+v, %v", hooks, err)
	}
	if _, hooks, err := b.core.UserSubscriptions(b.Context(), b.app, native.User); err != nil || len(hooks) != 0 {
		b.Errorf("the user has %+v, %v", hooks, err)
	}
}

// suspend lets a webhook have been suspended at a time.
func (b *bench) suspend(id string, at time.Time, reason string) {
	b.Helper()
	b.update(func(tx store.Tx) error {
		w, err := tx.Webhook(id)
		if err != nil {
			return err
		}
		w.Suspended, w.SuspendedAt = true, at
		return errors.Join(tx.PutWebhook(w), tx.PutHealth(wake.Health{Webhook: id, LastError: reason, FailedSince: at}))
	})
}

// refusedRefresh asks to refresh a webhook that its owner may not have any more.
func (b *bench) refusedRefresh(n core.Native, q core.HookRequest) {
	b.Helper()
	_, err := b.core.SubscribeWebhook(b.Context(), b.app, n, q)
	b.refused(err, refusal.Forbidden)
}

// An endedSite is a webhook that is about to end.
type endedSite struct {
	core.HookRequest
	core.HookGranted
}

// endByApp ends a live webhook, and once more, when nobody knows it any more.
func (b *bench) endByApp(id string) {
	b.Helper()
	for i, want := range []bool{true, false} {
		ended, err := b.core.EndSubscription(b.Context(), b.app, id)
		if i > 0 {
			b.refused(err, refusal.UnknownSubscription)
		} else if err != nil {
			b.Fatal(err)
		}
		if ended != want {
			b.Errorf("time %d: ended %v", i+1, ended)
		}
	}
}

// endings are the ways a webhook ends of which its endpoint is told.
var endings = map[string]struct {
	end     func(b *bench, w endedSite)
	refusal func(d core.Dialect) int
	data    map[string]any
}{
	"the event is gone": {func(b *bench, _ endedSite) { b.put(`{"events":[]}`) },
		func(d core.Dialect) int { return d.NotFound }, map[string]any{"kind": "event"}},
	"its arguments allow less": {func(b *bench, _ endedSite) {
		b.put(changed(b.T, siteArguments, `{"site":{"type":"string","enum":["t"]}},"required":["site"]}`))
	}, unsupported, map[string]any{"feature": "inputSchema", "reason": "schema_changed"}},
	"it needs another argument": {func(b *bench, _ endedSite) {
		b.put(changed(b.T, siteArguments, `{"site":{"type":"string"},"page":{"type":"string"}},"required":["site","page"]}`))
	}, unsupported, map[string]any{"feature": "inputSchema", "reason": "schema_changed"}},
	"its payload has another type": {func(b *bench, _ endedSite) {
		b.put(changed(b.T, sitePayload, strings.Replace(sitePayload, "integer", "string", 1)))
	}, unsupported, map[string]any{"feature": "payloadSchema", "reason": "schema_changed"}},
	"its payload lacks something": {func(b *bench, _ endedSite) {
		b.put(changed(b.T, sitePayload, siteArguments+`,"payload":{"type":"object"}`))
	}, unsupported, map[string]any{"feature": "payloadSchema", "reason": "schema_changed"}},
	"the app ends it": {func(b *bench, w endedSite) { b.endByApp(w.ID) }, forbidden, map[string]any{"reason": "ended"}},
	"the app refuses a refresh": {func(b *bench, w endedSite) {
		n := siteRequest(native)
		n.Refused = true
		b.refusedRefresh(n, w.HookRequest)
	}, forbidden, map[string]any{"reason": "app"}},
	"it is for tools now": {func(b *bench, w endedSite) {
		b.put(changed(b.T, `{site}","public":true`, `{site}","public":false`))
	}, forbidden, map[string]any{"reason": "tools_only"}},
	"suspended for a week": {func(b *bench, w endedSite) {
		b.suspend(w.ID, time.Now().Add(-7*24*time.Hour-time.Second), "http_5xx")
		if err := b.core.Sweep(b.Context()); err != nil {
			b.Fatal(err)
		}
	}, func(d core.Dialect) int { return d.Callback }, map[string]any{"reason": "http_5xx"}},
}

func unsupported(d core.Dialect) int { return d.Unsupported }
func forbidden(d core.Dialect) int   { return d.Forbidden }

func TestAnEndpointIsToldThatItsWebhookHasEnded(t *testing.T) {
	t.Parallel()
	for name, c := range endings {
		for _, dialect := range []string{core.DialectDraft, core.DialectChatGPT, core.DialectFinal} {
			t.Run(name+", "+dialect, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := setup(t)
					q := hook
					q.Dialect, q.TTL = dialect, -1
					w := endedSite{q, b.hooked(q)}
					b.hooks.fail(fault) // so that something is queued
					b.site("s", "1")
					synctest.Wait()
					c.end(b, w)
					b.unknown(w.ID)
					b.put(manifest)
					if done := b.site("s", "2"); done.Matched != 0 {
						t.Errorf("it matches %d", done.Matched)
					}
					time.Sleep(time.Hour)
					sent := b.hooks.deliveries()
					if len(sent) != 2 || len(b.ended(hook.URL)) != 1 {
						t.Fatalf("sent %+v, want what failed before and one notice", sent)
					}
					d, _ := core.DialectNamed(dialect)
					if diff := cmp.Diff(wireError{c.refusal(d), c.data}, b.errorIn(sent[1])); diff != "" {
						t.Error(diff)
					}
					if diff := cmp.Diff(core.HookTarget{URL: hook.URL, Secrets: []string{hook.Secret}, Subscription: w.ID}, sent[1].Target); diff != "" {
						t.Error(diff)
					}
					b.unknown(w.ID)
					if b.isKept(w.ID) {
						t.Error("it is kept after its last word")
					}
				})
			})
		}
	}
}

func TestWhatEndsNoWebhook(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bench, w endedSite){
		"the same manifest": func(b *bench, _ endedSite) { b.put(manifest) },
		"another argument that may be left out": func(b *bench, _ endedSite) {
			b.put(changed(b.T, siteArguments, `{"site":{"type":"string"},"page":{"type":"string"}},"required":["site"]}`))
		},
		"more in the payload": func(b *bench, _ endedSite) {
			b.put(changed(b.T, sitePayload, strings.Replace(sitePayload, `{"type":"integer"}`, `{"type":"integer"},"links":{"type":"integer"}`, 1)))
		},
		"another event is gone": func(b *bench, _ endedSite) { b.put(changed(b.T, `"name":"your.turn"`, `"name":"my.turn"`)) },
		"a stranger's refresh is refused": func(b *bench, w endedSite) {
			n := siteRequest(wake.Call{Client: "native-test", User: "bob"})
			n.Refused = true
			b.refusedRefresh(n, w.HookRequest)
		},
		"its endpoint fails a later verification": func(b *bench, w endedSite) {
			time.Sleep(25 * time.Hour)
			b.hooks.verify = "timeout"
			_, err := b.core.SubscribeWebhook(b.Context(), b.app, siteRequest(native), w.HookRequest)
			b.refused(err, refusal.CallbackFailed)
		},
		"suspended for six days": func(b *bench, w endedSite) {
			b.suspend(w.ID, time.Now().Add(-6*24*time.Hour), "http_5xx")
			if err := b.core.Sweep(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.hooked(w.HookRequest)
		},
		"with an end, and suspended for a week": func(b *bench, w endedSite) {
			w.TTL = 24 * time.Hour
			b.hooked(w.HookRequest)
			b.suspend(w.ID, time.Now().Add(-8*24*time.Hour), "http_5xx")
			if err := b.core.Sweep(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.hooked(w.HookRequest)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				q := hook
				q.TTL = -1
				w := endedSite{q, b.hooked(q)}
				change(b, w)
				if done := b.site("s", "1"); done.Matched != 1 {
					t.Errorf("it matches %d", done.Matched)
				}
				synctest.Wait()
				if sent := b.hooks.deliveries(); len(sent) != 1 || b.body(sent[0]).Data.Pages != 1 {
					t.Errorf("sent %+v", sent)
				}
				if got, err := b.core.Subscription(t.Context(), b.app, w.ID); err != nil || got.Status != core.StatusActive {
					t.Errorf("%+v, %v", got, err)
				}
			})
		})
	}
}

// The notice is tried as any delivery is, and it is the last thing that is kept of a webhook.
func TestANoticeOfAnEndIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		results []core.HookResult
		want    int
	}{
		"taken":                  {nil, 1},
		"taken at last":          {[]core.HookResult{fault, noReply, fault}, 4},
		"refused for good":       {[]core.HookResult{{Status: 410, Reason: "http_4xx"}}, 1},
		"never taken":            {[]core.HookResult{fault, fault, fault, fault, fault, fault, fault}, 5},
		"taken at the very last": {[]core.HookResult{fault, fault, fault, fault, taken}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				granted := b.hooked(hook)
				b.hooks.fail(c.results...)
				b.endByApp(granted.ID)
				time.Sleep(2 * time.Hour)
				sent := b.hooks.deliveries()
				if len(sent) != c.want {
					t.Fatalf("sent %d times, want %d", len(sent), c.want)
				}
				for _, one := range sent {
					if diff := cmp.Diff(sent[0], one); diff != "" {
						t.Errorf("an attempt differs: %s", diff)
					}
				}
				if b.isKept(granted.ID) || len(b.attempts(granted.ID)) != 0 {
					t.Error("it is kept after its last word")
				}
			})
		})
	}
}

func TestAWebhookThatHasEndedBeginsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		first := b.hooked(hook)
		b.hooks.fail(fault)
		b.site("s", "1") // waits for another attempt when it ends
		synctest.Wait()
		b.endByApp(first.ID)
		synctest.Wait()
		second := b.hooked(hook)
		if second.ID != first.ID || second.Status != nil {
			t.Errorf("began as %+v, want %s and no status", second, first.ID)
		}
		b.site("s", "2")
		synctest.Wait()
		b.endByApp(second.ID)
		time.Sleep(time.Second)
		third := b.hooked(hook) // with nothing between two ends
		b.endByApp(third.ID)
		time.Sleep(time.Hour)
		var got []string
		for _, sent := range b.hooks.deliveries() {
			got = append(got, sent.Body[strings.Index(sent.Body, `"data"`):][:17])
		}
		if diff := cmp.Diff([]string{`"data":{"pages":1`, `"data":{"reason":`, `"data":{"pages":2`, `"data":{"reason":`, `"data":{"reason":`}, got); diff != "" {
			t.Error(diff)
		}
		ids := map[string]bool{}
		for _, told := range b.ended(hook.URL) {
			ids[told.ID] = true
		}
		if len(ids) != 3 {
			t.Errorf("three ends are told as %v", ids)
		}
	})
}

// Who has subscribed again need not be told of the end any more.
func TestANoticeIsNotSentToWhoHasBegunAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		granted := b.hooked(hook)
		b.hooks.fail(fault)
		b.endByApp(granted.ID)
		synctest.Wait()
		b.hooked(hook)
		b.site("s", "1")
		time.Sleep(time.Hour)
		sent := b.hooks.deliveries()
		if len(sent) != 2 || len(b.ended(hook.URL)) != 1 || b.body(sent[1]).Data.Pages != 1 {
			t.Errorf("sent %+v, want the notice that failed and the event", sent)
		}
		if got, err := b.core.Subscription(t.Context(), b.app, granted.ID); err != nil || got.Status != core.StatusActive {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestEndsOfWhichNothingIsSaid(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *bench, id string){
		"unsubscribed": func(b *bench, id string) {
			ended, err := b.core.UnsubscribeWebhook(b.Context(), b.app, siteRequest(native), hook.URL)
			if err != nil || !ended {
				b.Errorf("%v, %v", ended, err)
			}
			b.unknown(id)
		},
		"its user was forgotten": func(b *bench, id string) {
			if !b.forget(native.User) {
				b.Error("there was nothing to forget")
			}
			b.unknown(id)
		},
		"its time was over": func(b *bench, id string) {
			time.Sleep(6 * time.Second)
			if ended, err := b.core.EndSubscription(b.Context(), b.app, id); err != nil || ended {
				b.Errorf("%v, %v", ended, err)
			}
			if _, hooks, err := b.core.UserSubscriptions(b.Context(), b.app, native.User); err != nil || len(hooks) != 0 {
				b.Errorf("the user has %+v, %v", hooks, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				q := hook
				q.TTL = 5 * time.Second
				granted := b.hooked(q)
				b.hooks.fail(core.HookResult{Retry: true, Status: 503, Reason: "http_5xx", RetryAfter: time.Minute}) // so that something is queued
				b.site("s", "1")
				synctest.Wait()
				end(b, granted.ID)
				if done := b.site("s", "2"); done.Matched != 0 {
					t.Errorf("it matches %d", done.Matched)
				}
				time.Sleep(time.Hour)
				if sent := b.hooks.deliveries(); len(sent) != 1 {
					t.Errorf("sent %+v, want what was sent before", sent)
				}
			})
		})
	}
}
