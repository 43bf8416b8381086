package eventsclienttest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/examples/crawler/crawler"
	"github.com/rouse-dev/rouse/rousetest"
	wakeshift "github.com/rouse-dev/rouse/sdk/go"
	"github.com/rouse-dev/rouse/sdk/go/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A peer is a crawler with a core of its own.
type peer struct {
	core *rousetest.Core
	url  string
}

func newPeer(t *testing.T) peer {
	t.Helper()
	core := rousetest.NewCore(t)
	app, err := crawler.New(wakeshift.WithKey(core.Key), wakeshift.WithCore(core.URL))
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(app.Handler())
	t.Cleanup(func() {
		web.Close()
		if err := app.Close(); err != nil {
			t.Error(err)
		}
	})
	return peer{core: core, url: web.URL}
}

// update emits that the site s1 has so many pages.
func (p peer) update(pages int) {
	p.core.Emit(rousetest.Event{Name: "site.updated", Arguments: map[string]any{"site": "s1"}, Payload: map[string]any{"pages": pages}})
}

// A door is where a server reaches the receiver of the program that runs now.
type door struct {
	url      string
	receiver atomic.Pointer[events.Receiver]
}

func newDoor(t *testing.T) *door {
	t.Helper()
	d := &door{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.receiver.Load().ServeHTTP(w, r) }))
	t.Cleanup(web.Close)
	d.url = web.URL + "/hooks"
	return d
}

// start starts a program: a client, and a receiver behind the door.
func (d *door) start(t *testing.T, at events.HTTP, opts events.Options) *events.Client {
	t.Helper()
	receiver, err := events.NewReceiver(d.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.receiver.Store(receiver)
	web := &http.Transport{}
	at.Client, opts.Receiver = &http.Client{Transport: web}, receiver
	client, err := events.Dial(t.Context(), at, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		web.CloseIdleConnections()
	})
	return client
}

// pages takes n occurrences, and gives their pages; a gap is -1.
func pages(t *testing.T, s *events.Subscription, n int) (list []int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for o, err := range s.All(ctx) {
		if err != nil {
			t.Fatalf("after %v: %v", list, err)
		}
		crawl := crawler.Crawl{Pages: -1}
		if !o.Gap {
			if err := json.Unmarshal(o.Data, &crawl); err != nil || o.ID == "" || o.Name != "site.updated" || o.Time.IsZero() {
				t.Errorf("got %+v: %v", o, err)
			}
		}
		if list = append(list, crawl.Pages); len(list) == n {
			if err := s.Settle(ctx); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if s.Mode() == events.Webhook {
		slices.Sort(list) // webhooks come in no promised order
	}
	return list
}

// Each mode brings what happens, once, and after a restart of the program what happened meanwhile: of a webhook the server tries that
// again.
func TestCrawler(t *testing.T) {
	for name, c := range map[string]struct {
		mode     events.Mode
		revision string
	}{
		"poll":                          {events.Poll, "2026-07-28"},
		"poll, of the old handshake":    {events.Poll, "2025-11-25"},
		"push":                          {events.Push, "2026-07-28"},
		"push, of the old handshake":    {events.Push, "2025-11-25"},
		"webhook":                       {events.Webhook, "2026-07-28"},
		"webhook, of the old handshake": {events.Webhook, "2025-11-25"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time is waiting
			server, door := newPeer(t), newDoor(t)
			store, err := events.NewFileStore(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			subscribe := func() (*events.Client, *events.Subscription) {
				client := door.start(t, events.HTTP{URL: server.url + "/mcp", Header: http.Header{"X-User": {"ada"}}, Revision: c.revision},
					events.Options{Store: store})
				s, err := client.Subscribe(t.Context(), "site.updated", crawler.Site{Site: "s1"}, &events.SubscribeOptions{Mode: c.mode})
				if err != nil {
					t.Fatal(err)
				}
				return client, s
			}
			client, s := subscribe()
			server.update(1)
			server.update(2)
			if diff := cmp.Diff([]int{1, 2}, pages(t, s, 2)); diff != "" {
				t.Error(diff)
			}
			client.Close()
			server.update(3)
			_, s = subscribe()
			server.update(4)
			if diff := cmp.Diff([]int{3, 4}, pages(t, s, 2)); diff != "" {
				t.Error(diff)
			}
			if err := s.Unsubscribe(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
