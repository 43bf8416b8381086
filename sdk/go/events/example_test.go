package events_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/rouse-dev/rouse/sdk/go/events"
)

// A program that follows the crawls of a server, by webhook if the server offers
// that and else by whatever it does offer, and goes on after a restart.
func Example() {
	ctx := context.Background()
	store, err := events.NewFileStore("/var/lib/crawl-watcher")
	if err != nil {
		log.Fatal(err)
	}
	receiver, err := events.NewReceiver("https://watcher.example.com/hooks", nil)
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/hooks/", receiver)
	go func() { log.Fatal(http.ListenAndServe("127.0.0.1:8080", nil)) }() // behind a proxy that speaks TLS

	client, err := events.Dial(ctx, events.HTTP{
		URL:    "https://crawler.example.com/mcp",
		Header: http.Header{"Authorization": {"Bearer …"}},
	}, &events.Options{Store: store, Receiver: receiver})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	crawl, err := client.Subscribe(ctx, "crawl.finished", map[string]any{"job": "j1"}, nil)
	if err != nil {
		log.Print(err)
		return
	}
	for occurrence, err := range crawl.All(ctx) {
		if err != nil {
			log.Print(err)
			return
		}
		if occurrence.Gap {
			fmt.Println("something may have been missed: look at the crawl itself")
			continue
		}
		fmt.Printf("%s at %s: %s\n", occurrence.Name, occurrence.Time, occurrence.Data)
	}
}
