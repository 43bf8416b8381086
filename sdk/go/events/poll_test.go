package events_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rouse-dev/rouse/sdk/go/events"
)

func TestPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "poll")
		f.emit(2) // before the subscription
		c := f.dial(nil)
		defer c.Close()
		s := subscribe(t, c, &events.SubscribeOptions{MaxEvents: 2})
		if s.Mode() != events.Poll || s.Cursor() != "c2" {
			t.Errorf("mode %s, cursor %s", s.Mode(), s.Cursor())
		}
		f.emit(5)
		isEqual(t, take(t, s, 5), "3", "4", "5", "6", "7")
		synctest.Wait()
		if s.Cursor() != "c7" {
			t.Errorf("the cursor is %s", s.Cursor())
		}
		// The first poll, and three in a row after the wait.
		if n := len(f.seen("events/poll")); n != 4 {
			t.Errorf("%d polls", n)
		}
	})
}

// The server names the time between polls, the client the least.
func TestPollWaits(t *testing.T) {
	for name, c := range map[string]struct {
		nextPoll any
		least    time.Duration
		want     time.Duration
	}{
		"as the server says": {2000, 0, 2 * time.Second},
		"not below a second": {10, 0, time.Second},
		"not below the option": {
			2000, 5 * time.Second, 5 * time.Second},
		"absent":   {nil, 0, 30 * time.Second},
		"negative": {-5, 0, time.Second},
		"absurd":   {1e300, 0, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, "poll")
				f.nextPoll = c.nextPoll
				client := f.dial(&events.Options{LeastPoll: c.least})
				defer client.Close()
				s := subscribe(t, client, nil)
				begun := time.Now()
				f.emit(1)
				isEqual(t, take(t, s, 1), "1")
				if got := time.Since(begun); got != c.want {
					t.Errorf("waited %v, want %v", got, c.want)
				}
			})
		})
	}
}

// A server that always has more is not asked without a pause.
func TestHasMoreIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "poll")
		c := f.dial(nil)
		defer c.Close()
		s := subscribe(t, c, &events.SubscribeOptions{MaxEvents: 1})
		f.emit(1000)
		begun := time.Now()
		take(t, s, 250)
		if waited := time.Since(begun); waited != 6*time.Second { // at the beginning, and after each hundred
			t.Errorf("250 events came in %v", waited)
		}
	})
}

func TestPollingGoesOnAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "poll")
		c := f.dial(nil)
		defer c.Close()
		s := subscribe(t, c, nil)
		f.refuse("events/poll", httpRefusal(503), refusal{Code: -32603, Message: "Internal"}, refusal{Code: -32025, Message: "quota"}, httpRefusal(429))
		f.emit(1)
		begun := time.Now()
		isEqual(t, take(t, s, 1), "1")
		if waited := time.Since(begun); waited < 17*time.Second || waited > 40*time.Second {
			t.Errorf("it took %v, with two times a Retry-After of 7 s", waited)
		}
	})
}

func TestPollingTruncated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "poll")
		f.emit(9)
		f.kept = 5
		c := f.dial(nil)
		defer c.Close()
		s := subscribe(t, c, &events.SubscribeOptions{Cursor: "c2"})
		isEqual(t, take(t, s, 3), "gap", "6", "7")
		s.Close()
		s = subscribe(t, c, nil) // from where the whole answer began, since it was not handled to the end
		isEqual(t, take(t, s, 5), "gap", "6", "7", "8", "9")
	})
}

// Both sets of codes are read. What ends a subscription is told, once and again.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		want error
	}{
		"not found": {-32023, events.ErrNotFound}, "not found, sketch": {-32011, events.ErrNotFound},
		"forbidden": {-32024, events.ErrForbidden}, "forbidden, sketch": {-32012, events.ErrForbidden},
		"unsupported": {-32026, events.ErrUnsupported}, "unsupported, sketch": {-32014, events.ErrUnsupported},
		"params": {-32602, events.ErrInvalidParams}, "method": {-32601, events.ErrNotOffered},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, "poll")
				c2 := f.dial(nil)
				defer c2.Close()
				s := subscribe(t, c2, nil)
				refused := refusal{Code: c.code, Message: "No", Data: object{"reason": "because"}}
				f.refuse("events/poll", refused)
				for range 2 {
					err := ending(t, s)
					wire, ok := errors.AsType[*events.Error](err)
					if !errors.Is(err, c.want) || !ok || wire.Code != c.code || string(wire.Data) != `{"reason":"because"}` {
						t.Errorf("ended with %v", err)
					}
				}
				s.Close()
				f.refuse("events/poll", refused)
				if _, err := c2.Subscribe(t.Context(), "tick", nil, nil); !errors.Is(err, c.want) {
					t.Errorf("subscribing: %v", err)
				}
			})
		})
	}
	for code, want := range map[int]error{-32025: events.ErrResourceExhausted, -32013: events.ErrResourceExhausted,
		-32027: events.ErrCallbackEndpoint, -32015: events.ErrCallbackEndpoint} {
		if err := error(&events.Error{Code: code}); !errors.Is(err, want) {
			t.Errorf("%d is not %v", code, want)
		}
	}
}

// A removed event takes the cursor with it; whoever subscribes again is told.
func TestAnOutdatedCursorIsNotUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "poll")
		c := f.dial(nil)
		defer c.Close()
		s := subscribe(t, c, nil)
		f.refuse("events/poll", refusal{Code: -32026, Message: "Unsupported", Data: object{"reason": "schema_changed"}})
		if err := ending(t, s); !errors.Is(err, events.ErrUnsupported) {
			t.Fatal(err)
		}
		s.Close()
		f.emit(3)
		s = subscribe(t, c, nil)
		f.emit(1)
		isEqual(t, take(t, s, 2), "gap", "4")
	})
}
