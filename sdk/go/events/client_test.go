package events_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rouse-dev/rouse/sdk/go/events"
)

// A server of the old handshake and the sketch's capability, which forgets its session.
func TestOldHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "poll")
		f.revision, f.caps = "2025-11-25", object{"events": object{}}
		c := f.dial(nil)
		defer c.Close()
		s := subscribe(t, c, nil)
		f.set(func() { f.sessions++ })
		f.emit(2)
		isEqual(t, take(t, s, 2), "1", "2")
	})
}

func TestNotOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "poll")
		f.caps = object{"tools": object{}}
		if _, err := events.Dial(t.Context(), f.at(), nil); !errors.Is(err, events.ErrNotOffered) {
			t.Error(err)
		}
		f.dial(&events.Options{Unadvertised: true}).Close()
	})
}

// A list goes on from page to page.
func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "poll")
		f.pages = [][]object{{{"name": "a"}, {"name": "b"}}, {{"name": "c", "delivery": []string{"poll"}}}}
		c := f.dial(nil)
		defer c.Close()
		got := []string{}
		for d, err := range c.List(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, d.Name)
		}
		isEqual(t, got, "a", "b", "c")
		if _, err := c.Subscribe(t.Context(), "tick", []int{1}, nil); err == nil {
			t.Error("arguments that are no object")
		}
	})
}

// The same subscription is made once; with a Key there are more.
func TestInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "poll")
		c := f.dial(nil)
		s := subscribe(t, c, nil)
		if _, err := c.Subscribe(t.Context(), "tick", map[string]any{}, nil); !errors.Is(err, events.ErrInUse) {
			t.Error(err)
		}
		subscribe(t, c, &events.SubscribeOptions{Key: "second"})
		s.Close()
		subscribe(t, c, nil)
		c.Close()
		if _, err := c.Subscribe(t.Context(), "tick", nil, nil); !errors.Is(err, events.ErrClosed) {
			t.Error(err)
		}
	})
}
