package events_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rouse-dev/rouse/sdk/go/events"
)

// Whatever happens to a stream, each event comes once and in order.
func TestPushing(t *testing.T) {
	for name, c := range map[string]struct {
		breaks []string
		want   []string
	}{
		"undisturbed":     {nil, []string{"1", "2"}},
		"broken":          {[]string{"break"}, []string{"1", "2"}},
		"closed":          {[]string{"close"}, []string{"1", "2"}},
		"broken twice":    {[]string{"break", "close"}, []string{"1", "2"}},
		"silent":          {[]string{"silence"}, []string{"1", "2"}},
		"a gap":           {[]string{"gap"}, []string{"1", "gap", "2"}},
		"what is unknown": {[]string{"junk"}, []string{"1", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, "poll", "push")
				client := f.dial(nil)
				defer client.Close()
				s := subscribe(t, client, nil)
				if s.Mode() != events.Push {
					t.Errorf("mode %s", s.Mode())
				}
				f.emit(1)
				isEqual(t, take(t, s, 1), "1")
				for _, what := range c.breaks {
					f.breakNow <- what
					synctest.Wait()
				}
				f.emit(1)
				isEqual(t, take(t, s, len(c.want)-1), c.want[1:]...)
			})
		})
	}
}

// A heartbeat moves the position; a closed client goes on where it was.
func TestPushGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "push")
		store := &events.MemoryStore{}
		c := f.dial(&events.Options{Store: store})
		s := subscribe(t, c, nil)
		f.emit(2)
		isEqual(t, take(t, s, 2), "1", "2")
		time.Sleep(time.Minute)
		if s.Cursor() != "c2" {
			t.Errorf("the cursor is %s", s.Cursor())
		}
		c.Close()
		f.emit(1)
		c = f.dial(&events.Options{Store: store})
		defer c.Close()
		isEqual(t, take(t, subscribe(t, c, nil), 1), "3")
	})
}

// Without replay a broken stream is a gap.
func TestPushWithoutReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "push")
		f.noReplay = true
		c := f.dial(nil)
		defer c.Close()
		s := subscribe(t, c, nil)
		f.breakNow <- "break"
		isEqual(t, take(t, s, 1), "gap")
		synctest.Wait()
		f.emit(1)
		isEqual(t, take(t, s, 1), "1")
	})
}

func TestPushTerminated(t *testing.T) {
	for what, want := range map[string]error{"forbid": events.ErrForbidden, "forbid-sketch": events.ErrForbidden, "remove": events.ErrNotFound} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, "push")
				c := f.dial(nil)
				defer c.Close()
				s := subscribe(t, c, nil)
				f.breakNow <- what
				if err := ending(t, s); !errors.Is(err, want) {
					t.Errorf("ended with %v", err)
				}
			})
		})
	}
}
