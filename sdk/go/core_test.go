package wakeshift_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

func publicOf(seed []byte) ed25519.PublicKey {
	return ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
}

// emitOnce emits with a core that answers the emit as told.
func emitOnce(t *testing.T, answers ...answer) (*fakeCore, wakeshift.Emitted, error) {
	t.Helper()
	core := offlineCore()
	var asked int
	core.on(func(r coreRequest) (answer, bool) {
		if r.Path != "/events/emit" || asked >= len(answers) {
			return answer{}, false
		}
		asked++
		return answers[asked-1], true
	})
	wake := newWake(t, core, wakeshift.WithHTTPClient(core.client()))
	finished := define(t, wake, "crawl.finished", crawlEvent())
	emitted, err := finished.Emit(t.Context(), crawlArgs{"j1"}, crawl{1})
	return core, emitted, err
}

func TestErrorsOfTheCore(t *testing.T) {
	t.Parallel()
	page := "<html>Server Error</html>"
	for name, test := range map[string]struct {
		answer answer
		want   wakeshift.Error
	}{
		"an error": {
			refuse(409, "callback_failed", "the endpoint failed"),
			wakeshift.Error{Status: 409, Code: "callback_failed", Message: "the endpoint failed"},
		},
		"an error with a reason": {
			answer{status: 400, body: map[string]any{"error": map[string]any{"code": "callback_failed", "message": "m", "reason": "timeout"}}},
			wakeshift.Error{Status: 400, Code: "callback_failed", Message: "m", Reason: "timeout"},
		},
		"an error without a message": {
			answer{status: 404, body: map[string]any{"error": map[string]any{"code": "unknown_key"}}},
			wakeshift.Error{Status: 404, Code: "unknown_key", Message: "Not Found"},
		},
		"a page":              {answer{status: 404, body: page}, wakeshift.Error{Status: 404, Code: "bad_response"}},
		"a redirect":          {answer{status: 302, header: http.Header{"Location": {"http://elsewhere.invalid"}}, body: page}, wakeshift.Error{Status: 302, Code: "bad_response"}},
		"a page as success":   {answer{status: 200, body: page}, wakeshift.Error{Status: 200, Code: "bad_response"}},
		"a list as success":   {answer{status: 200, body: []any{}}, wakeshift.Error{Status: 200, Code: "bad_response"}},
		"nothing as success":  {answer{status: 204, body: ""}, wakeshift.Error{Status: 204, Code: "bad_response"}},
		"an object of others": {answer{status: 200, body: map[string]any{"hello": "world"}}, wakeshift.Error{Status: 200, Code: "bad_response"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, _, err := emitOnce(t, test.answer)
			var got *wakeshift.Error
			if !errors.As(err, &got) || !wakeshift.IsCode(err, test.want.Code) {
				t.Fatalf("the error is %v", err)
			}
			if test.want.Message == "" {
				test.want.Message = got.Message
				if !strings.Contains(got.Message, core.URL) || strings.Contains(got.Message, "html") {
					t.Errorf("the message does not name the core, or quotes it: %q", got.Message)
				}
			}
			if diff := cmp.Diff([]any{test.want.Status, test.want.Code, test.want.Message, test.want.Reason},
				[]any{got.Status, got.Code, got.Message, got.Reason}); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if n := len(core.seen("/events/emit")); n != 1 {
				t.Errorf("%d attempts", n)
			}
		})
	}
}

// An answer that lacks what it must have comes from no core.
func TestAnswersWithoutTheirParts(t *testing.T) {
	t.Parallel()
	core := startCore(t)
	core.on(func(r coreRequest) (answer, bool) {
		return ok(map[string]any{"session": "s", "event_subscription": map[string]any{}}), r.Path == "/event-subscriptions"
	})
	_, err := subscribeIn(t, newWake(t, core), "claude-code", map[string]any{"job": "j1"})
	if !wakeshift.IsCode(err, wakeshift.CodeBadResponse) {
		t.Errorf("the error is %v", err)
	}
}

func FuzzAnswer(f *testing.F) {
	core := offlineCore()
	wake := newWake(f, core, wakeshift.WithHTTPClient(core.client()))
	finished := define(f, wake, "crawl.finished", crawlEvent())
	f.Add(200, `{"matched":1}`)
	f.Add(400, `{"error":{"code":"unknown_event","message":"m","reason":"r"}}`)
	f.Add(500, `<html>`)
	f.Add(200, `{"matched":"1"}`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 {
			return
		}
		core.on(func(r coreRequest) (answer, bool) {
			return answer{status: status, body: body}, r.Path == "/events/emit"
		})
		ctx, cancel := context.WithCancel(t.Context())
		if status >= 500 {
			cancel() // do not wait for a retry
		}
		defer cancel()
		_, err := finished.Emit(ctx, crawlArgs{"j1"}, crawl{1})
		var refusal *wakeshift.Error
		if err != nil && !errors.As(err, &refusal) {
			t.Errorf("the error is no *Error: %v", err)
		}
		if err == nil && status/100 != 2 {
			t.Errorf("%d is a success", status)
		}
	})
}

func TestRetries(t *testing.T) {
	t.Parallel()
	page := answer{status: 502, body: "<html>Bad Gateway</html>"}
	busy := refuse(503, "overloaded", "try again later")
	after := func(a answer, value string) answer { a.header = http.Header{"Retry-After": {value}}; return a }
	for name, test := range map[string]struct {
		answers  []answer
		attempts int
		fails    bool
		least    time.Duration // the waits are at least so long
	}{
		"a proxy's page":          {[]answer{page}, 2, false, 100 * time.Millisecond},
		"a proxy's page, thrice":  {[]answer{page, page, page}, 3, true, 937 * time.Millisecond}, // three quarters of both pauses
		"503 with Retry-After":    {[]answer{after(busy, "3")}, 2, false, 3 * time.Second},
		"429 with Retry-After":    {[]answer{after(refuse(429, "slow_down", "m"), "1"), after(busy, "0")}, 3, false, time.Second},
		"Retry-After, too long":   {[]answer{after(busy, "3600")}, 1, true, 0},
		"Retry-After, unreadable": {[]answer{after(busy, "soon")}, 1, true, 0},
		"503 without Retry-After": {[]answer{busy}, 1, true, 0},
		"a core's own 500":        {[]answer{refuse(500, "internal", "m")}, 1, true, 0},
		"a core's own 400":        {[]answer{after(refuse(400, "bad_request", "m"), "1")}, 1, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				core, emitted, err := emitOnce(t, test.answers...)
				if (err != nil) != test.fails {
					t.Errorf("the error is %v", err)
				}
				seen := core.seen("/events/emit")
				if len(seen) != test.attempts {
					t.Errorf("%d attempts, want %d", len(seen), test.attempts)
				}
				if waited := time.Since(start); waited < test.least || waited > 10*time.Second {
					t.Errorf("waited %v", waited)
				}
				ids := map[any]bool{}
				for _, r := range seen {
					ids[r.Body["id"]] = true
				}
				if len(ids) != 1 || ids[nil] || ids[""] {
					t.Errorf("the attempts have the ids %v, want one", ids)
				}
				if emitted.Duplicate {
					t.Error("called a duplicate")
				}
			})
		})
	}
}

// A request that was answered, but whose answer was lost, counts once.
func TestLostAnswerCountsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core := offlineCore()
		var lost atomic.Bool
		inner := core.client().Transport
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := inner.RoundTrip(r)
			if strings.HasSuffix(r.URL.Path, "/events/emit") && lost.CompareAndSwap(false, true) {
				return nil, &net.OpError{Op: "read", Err: syscall.ECONNRESET}
			}
			return response, err
		})}
		wake := newWake(t, core, wakeshift.WithHTTPClient(client))
		finished := define(t, wake, "crawl.finished", crawlEvent())
		emitted, err := finished.Emit(t.Context(), crawlArgs{"j1"}, crawl{1})
		if err != nil || emitted.Duplicate {
			t.Errorf("Emit: %+v, %v", emitted, err)
		}
		if n := len(core.emitted); n != 1 {
			t.Errorf("%d occurrences are kept", n)
		}
	})
}

func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	for name, test := range map[string]struct {
		failure    error
		subscribes int // attempts of a call that must not be repeated blindly
	}{
		"refused": {refused, 3},
		"reset":   {reset, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				core := offlineCore()
				inner := core.client().Transport
				var attempts int
				client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					if strings.HasSuffix(r.URL.Path, "/event-subscriptions") {
						attempts++
						return nil, test.failure
					}
					return inner.RoundTrip(r)
				})}
				wake := newWake(t, core, wakeshift.WithHTTPClient(client))
				_, err := subscribeIn(t, wake, "claude-code", map[string]any{"job": "j1"})
				if !wakeshift.IsCode(err, wakeshift.CodeUnreachable) || !errors.Is(err, test.failure) {
					t.Errorf("the error is %v", err)
				}
				if attempts != test.subscribes {
					t.Errorf("%d attempts, want %d", attempts, test.subscribes)
				}
			})
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	core := offlineCore()
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})}
	wake := newWake(t, core, wakeshift.WithHTTPClient(client))
	finished := define(t, wake, "crawl.finished", crawlEvent())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := finished.Emit(ctx, crawlArgs{"j1"}, crawl{1})
	if !wakeshift.IsCode(err, wakeshift.CodeUnreachable) || !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	var e *wakeshift.Error
	if errors.As(err, &e) && e.Status != 0 {
		t.Errorf("the status is %d", e.Status)
	}
}

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"0": 0, "7": 7 * time.Second,
		"Mon, 30 Nov 2026 12:00:09 GMT": 9 * time.Second,
		"Mon, 30 Nov 2026 11:00:00 GMT": 0,
		"-1":                            -1, "soon": -1, "": -1, "1.5": -1, "99999999999999999999": -1,
	} {
		got, ok := wakeshift.ParseRetryAfter(value, now)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %v, want %v", value, got, want)
		}
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	f.Add("7")
	f.Add("Mon, 30 Nov 2026 12:00:09 GMT")
	f.Fuzz(func(t *testing.T, value string) {
		if d, ok := wakeshift.ParseRetryAfter(value, time.Unix(0, 0)); ok && d < 0 {
			t.Errorf("%q is %v", value, d)
		}
	})
}
