package eventsclienttest

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/examples/crawler/crawler"
	"github.com/rouse-dev/rouse/sdk/go/events"
)

// Whoever was away for longer than the server tries again makes the webhook anew, and the server replays.
func TestReplayHole(t *testing.T) {
	server, door := newPeer(t), newDoor(t)
	store, err := events.NewFileStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	subscribe := func() (*events.Client, *events.Subscription) {
		client := door.start(t, events.HTTP{URL: server.url + "/mcp", Header: http.Header{"X-User": {"ada"}}},
			events.Options{Store: store, RetryWindow: time.Nanosecond}) // any time away is longer
		s, err := client.Subscribe(t.Context(), "site.updated", crawler.Site{Site: "s1"}, &events.SubscribeOptions{Mode: events.Webhook})
		if err != nil {
			t.Fatal(err)
		}
		return client, s
	}
	client, s := subscribe()
	server.update(1)
	if diff := cmp.Diff([]int{1}, pages(t, s, 1)); diff != "" {
		t.Error(diff)
	}
	client.Close()
	server.update(2)
	_, s = subscribe()
	if diff := cmp.Diff([]int{2}, pages(t, s, 1)); diff != "" {
		t.Error(diff)
	}
}
