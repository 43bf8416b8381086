package events_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rouse-dev/rouse/sdk/go/events"
)

// receive makes a client with a receiver, to which the fake server delivers.
func (f *fakeServer) receive(store events.Store) *events.Client {
	f.t.Helper()
	receiver, err := events.NewReceiver("https://receiver.example/hooks", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.set(func() { f.receiver = receiver })
	return f.dial(&events.Options{Store: store, Receiver: receiver})
}

func newFileStore(t *testing.T) events.Store {
	t.Helper()
	store, err := events.NewFileStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "poll", "push", "webhook")
		c := f.receive(nil)
		defer c.Close()
		s := subscribe(t, c, nil)
		if s.Mode() != events.Webhook {
			t.Errorf("mode %s", s.Mode())
		}
		f.emit(2)
		if code, _ := f.deliver(f.hook(), f.event(2)); code/100 != 2 { // again
			t.Errorf("a duplicate got %d", code)
		}
		f.emit(1)
		isEqual(t, take(t, s, 3), "1", "2", "3")
		if s.Cursor() != "c3" {
			t.Errorf("the cursor is %s", s.Cursor())
		}
		f.deliver(f.hook(), object{"type": "gap", "cursor": "c9"})
		f.deliver(f.hook(), object{"type": "unheard_of"})
		isEqual(t, take(t, s, 1), "gap")
		f.deliver(f.hook(), object{"type": "terminated", "error": object{"code": -32012, "message": "Forbidden"}})
		if err := ending(t, s); !errors.Is(err, events.ErrForbidden) {
			t.Errorf("ended with %v", err)
		}
		for _, code := range f.callbacks {
			if code/100 != 2 {
				t.Errorf("deliveries got %v", f.callbacks)
			}
		}
	})
}

// A webhook is refreshed before its time, with the last cursor and the same
// secret; a rotation brings another, and the old one is good for a while.
func TestWebhookRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "webhook")
		c := f.receive(nil)
		defer c.Close()
		s := subscribe(t, c, &events.SubscribeOptions{TTL: events.Forever})
		f.emit(1)
		isEqual(t, take(t, s, 1), "1")
		time.Sleep(45 * time.Minute) // of an hour
		asked := f.seen("events/subscribe")
		if len(asked) != 2 {
			t.Fatalf("%d subscribes", len(asked))
		}
		secretOf := func(r fakeRequest) any { return r.Params["delivery"].(object)["secret"] }
		ttl, has := asked[0].Params["ttlMs"]
		if asked[1].Params["cursor"] != "c1" || secretOf(asked[0]) != secretOf(asked[1]) || !has || ttl != nil {
			t.Errorf("asked with %v", asked[1].Params)
		}
		old := *f.hook()
		if err := s.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if old.secret == f.hook().secret {
			t.Error("the secret is the same")
		}
		f.deliver(&old, f.event(2))
		f.deliver(f.hook(), f.event(3))
		isEqual(t, take(t, s, 2), "2", "3")
		time.Sleep(25 * time.Hour)
		if code, _ := f.deliver(&old, f.event(4)); code != http.StatusUnauthorized {
			t.Errorf("a secret of yesterday got %d", code)
		}
	})
}

// What was accepted and not handled comes again after a restart; what was handled
// is known if it comes once more.
func TestWebhookRestart(t *testing.T) {
	store := newFileStore(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "webhook")
		c := f.receive(store)
		s := subscribe(t, c, nil)
		f.emit(3)
		isEqual(t, take(t, s, 1), "1")
		c.Close()
		c = f.receive(store)
		defer c.Close()
		s = subscribe(t, c, nil)
		f.deliver(f.hook(), f.event(1))
		f.emit(1)
		isEqual(t, take(t, s, 3), "2", "3", "4")
		if n := len(f.seen("events/unsubscribe")); n != 0 {
			t.Errorf("%d unsubscribes within the retry window", n)
		}
	})
}

// Whoever was away for longer than the server retries has the rest replayed.
func TestReplayHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "webhook")
		store := &events.MemoryStore{}
		c := f.receive(store)
		s := subscribe(t, c, nil)
		f.emit(1)
		isEqual(t, take(t, s, 1), "1")
		c.Close()
		f.emit(2) // and given up
		time.Sleep(10 * time.Minute)
		c = f.receive(store)
		defer c.Close()
		isEqual(t, take(t, subscribe(t, c, nil), 2), "2", "3")
		asked := f.seen("events/subscribe")
		if n := len(f.seen("events/unsubscribe")); n != 1 || asked[len(asked)-1].Params["cursor"] != "c1" {
			t.Errorf("%d unsubscribes, then %v", n, asked[len(asked)-1].Params)
		}
	})
}

// A server that says at a refresh that it has given up is asked to replay, too.
func TestReplayAfterSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "webhook")
		c := f.receive(nil)
		defer c.Close()
		s := subscribe(t, c, nil)
		f.emit(1)
		isEqual(t, take(t, s, 1), "1")
		receiver := f.receiver
		f.set(func() { f.receiver = http.NotFoundHandler() })
		f.emit(2)
		f.set(func() { f.receiver, f.status = receiver, object{"active": false, "lastError": "http_4xx"} })
		isEqual(t, take(t, s, 2), "2", "3")
	})
}

func TestReceiverRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "webhook")
		c := f.receive(nil)
		defer c.Close()
		s := subscribe(t, c, nil)
		f.emit(1)
		h := f.hook()
		status := func(r *http.Request) int {
			w := httptest.NewRecorder()
			f.receiver.ServeHTTP(w, r)
			return w.Code
		}
		body := []byte(`{"eventId":"x","name":"tick","timestamp":"","data":{"n":7}}`)
		for name, c := range map[string]struct {
			body   []byte
			change func(r *http.Request)
			at     time.Time
			want   int
		}{
			"method":            {body, func(r *http.Request) { r.Method = http.MethodGet }, time.Now(), 405},
			"media type":        {body, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, time.Now(), 415},
			"length":            {make([]byte, 512<<10+1), func(*http.Request) {}, time.Now(), 413},
			"length, chunked":   {make([]byte, 512<<10+1), func(r *http.Request) { r.ContentLength = -1 }, time.Now(), 413},
			"path":              {body, func(r *http.Request) { r.URL.Path += "0" }, time.Now(), 503},
			"id":                {body, func(r *http.Request) { r.Header.Set("X-MCP-Subscription-Id", "other") }, time.Now(), 503},
			"no signature":      {body, func(r *http.Request) { r.Header.Del("webhook-signature") }, time.Now(), 401},
			"another id signed": {body, func(r *http.Request) { r.Header.Set("webhook-id", "other") }, time.Now(), 401},
			"too old":           {body, func(*http.Request) {}, time.Now().Add(-6 * time.Minute), 401},
			"from the future":   {body, func(*http.Request) {}, time.Now().Add(6 * time.Minute), 401},
			"no JSON":           {[]byte("no"), func(*http.Request) {}, time.Now(), 400},
			"no delivery":       {[]byte("{}"), func(*http.Request) {}, time.Now(), 400},
		} {
			r := h.request("msg_x", c.at, c.body)
			c.change(r)
			if got := status(r); got != c.want {
				t.Errorf("%s: %d, want %d", name, got, c.want)
			}
		}
		challenge := h.request("msg_v", time.Now(), []byte(`{"type":"verification","challenge":"again"}`))
		w := httptest.NewRecorder()
		f.receiver.ServeHTTP(w, challenge)
		if w.Code != http.StatusOK || strings.TrimSpace(w.Body.String()) != `{"challenge":"again"}` {
			t.Errorf("a challenge got %d %s", w.Code, w.Body)
		}
		isEqual(t, take(t, s, 1), "1") // nothing of the refused came through
		if err := s.Unsubscribe(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := status(h.request("msg_y", time.Now(), body)); got != http.StatusGone {
			t.Errorf("after the end: %d", got)
		}
	})
}

// A store that fails, and a queue that is full, are answered so that the delivery
// comes again.
func TestReceiverKeepsBeforeItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "webhook")
		c := f.receive(nil)
		defer c.Close()
		s := subscribe(t, c, nil)
		f.emit(256)
		if code, _ := f.deliver(f.hook(), f.event(257)); code != http.StatusServiceUnavailable {
			t.Errorf("one too many got %d", code)
		}
		isEqual(t, take(t, s, 1), "1")
		if code, _ := f.deliver(f.hook(), f.event(257)); code/100 != 2 {
			t.Errorf("with room again: %d", code)
		}
	})
}

func TestNoCompatibleMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "webhook")
		c := f.dial(nil)
		defer c.Close()
		if _, err := c.Subscribe(t.Context(), "tick", nil, nil); !errors.Is(err, events.ErrNoCompatibleDeliveryMode) {
			t.Error(err)
		}
		if _, err := c.Subscribe(t.Context(), "tock", nil, nil); !errors.Is(err, events.ErrNotFound) {
			t.Error(err)
		}
	})
}

// Without replay a time away is a gap, one however often the server speaks of it.
func TestTimeAwayWithoutReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "webhook")
		f.noReplay = true
		store := &events.MemoryStore{}
		c := f.receive(store)
		subscribe(t, c, nil)
		c.Close()
		f.emit(1)
		time.Sleep(10 * time.Minute)
		f.set(func() { f.status = object{"active": false, "lastError": "http_5xx"} })
		c = f.receive(store)
		defer c.Close()
		s := subscribe(t, c, nil)
		f.set(func() { f.status = nil })
		f.emit(1)
		isEqual(t, take(t, s, 2), "gap", "2")
	})
}
