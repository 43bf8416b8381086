package events_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rouse-dev/rouse/sdk/go/events"
)

// The directory may be written in any way.
func TestFileStoreDirectories(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, directory := range []string{"a", "./b", "c/", "d/../e"} {
		store, err := events.NewFileStore(directory)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Put(t.Context(), "x/y/state", []byte("1")); err != nil {
			t.Errorf("%s: %v", directory, err)
		}
		if kept, err := store.List(t.Context(), "x/"); err != nil || string(kept["x/y/state"]) != "1" {
			t.Errorf("%s: %v, %v", directory, kept, err)
		}
	}
}

// A program that was away for long with all the room taken begins again, and is
// told of the gap once.
func TestBeginningFullAndTruncated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "webhook")
		store := &events.MemoryStore{}
		c := f.receive(store)
		subscribe(t, c, nil)
		f.emit(256)
		c.Close()
		for range 2 {
			time.Sleep(10 * time.Minute)
			f.emit(10)
			f.mu.Lock()
			f.kept = f.log
			f.mu.Unlock()
			c = f.receive(store)
			s := subscribe(t, c, nil)
			if s.Cursor() != cursorAt(f.kept) {
				t.Errorf("the cursor is %s", s.Cursor())
			}
			c.Close()
		}
		c = f.receive(store)
		defer c.Close()
		s := subscribe(t, c, nil)
		take(t, s, 256)
		isEqual(t, take(t, s, 1), "gap")
		f.emit(1)
		isEqual(t, take(t, s, 1), "277")
	})
}

// However often the server refuses to take a new secret, the one that it has
// stays good.
func TestRotateRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "webhook")
		c := f.receive(nil)
		defer c.Close()
		s := subscribe(t, c, nil)
		for range 5 {
			f.refuse("events/subscribe", refusal{Code: -32025, Message: "quota"})
			if err := s.Rotate(t.Context()); err == nil {
				t.Error("rotated")
			}
		}
		old := *f.hook()
		f.emit(1)
		if err := s.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.deliver(&old, f.event(2))
		f.deliver(f.hook(), f.event(3))
		isEqual(t, take(t, s, 3), "1", "2", "3")
	})
}

// Whoever leaves before handling the gap of a lost cursor is told of it again, and
// once it is handled no more.
func TestALostCursorIsToldUntilHandled(t *testing.T) {
	for _, mode := range []events.Mode{events.Poll, events.Push, events.Webhook} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, string(mode))
				store := &events.MemoryStore{}
				c := f.receive(store)
				subscribe(t, c, nil)
				c.Close()
				method := map[events.Mode]string{events.Poll: "events/poll", events.Push: "events/stream", events.Webhook: "events/subscribe"}[mode]
				f.refuse(method, refusal{Code: -32026, Message: "Unsupported", Data: object{"reason": "schema_changed"}})
				c = f.receive(store)
				if _, err := c.Subscribe(t.Context(), "tick", nil, nil); !errors.Is(err, events.ErrUnsupported) {
					t.Fatal(err)
				}
				c.Close()
				for range 2 { // it leaves at the gap
					c = f.receive(store)
					s := subscribe(t, c, nil)
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					for o, err := range s.All(ctx) {
						if err != nil || !o.Gap {
							t.Errorf("got %+v, %v", o, err)
						}
						break
					}
					cancel()
					c.Close()
				}
				c = f.receive(store)
				isEqual(t, take(t, subscribe(t, c, nil), 1), "gap")
				c.Close()
				c = f.receive(store)
				defer c.Close()
				s := subscribe(t, c, nil)
				f.emit(1)
				isEqual(t, take(t, s, 1), "1")
			})
		})
	}
}
