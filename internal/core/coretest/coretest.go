// Package coretest gives the tests of what stands around the core a real one: on a real database in a temporary directory, with an
// app whose manifest has the crawler's events.
package coretest

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
	"github.com/rouse-dev/rouse/internal/wake"
)

// PublicURL is the core's when an option does not say otherwise.
const PublicURL = "http://core.test"

// Manifest has crawl.finished {job}, tools only, and site.updated {site}, public; their payload is {pages}.
const Manifest = `{"events":[
 {"name":"crawl.finished","description":"A crawl finished","topic":"ev/crawl.finished/{job}","public":false,
  "arguments":{"type":"object","properties":{"job":{"type":"string"}},"required":["job"]},
  "payload":{"type":"object","properties":{"pages":{"type":"integer"},"note":{"type":"string"}},"required":["pages"]}},
 {"name":"site.updated","description":"A site changed","topic":"ev/site.updated/{site}","public":true,
  "arguments":{"type":"object","properties":{"site":{"type":"string"}},"required":["site"]},
  "payload":{"type":"object","properties":{"pages":{"type":"integer"}},"required":["pages"]}}]}`

// A Bench is a core and an app of it.
type Bench struct {
	testing.TB
	Core *core.Core
	App  wake.App
	Key  credential.AppKey
}

// New starts a core that ends with the test.
func New(t testing.TB, change ...func(*core.Options)) *Bench {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "rouse.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := core.Options{Store: s, Master: credential.NewMaster([32]byte{1}), PublicURL: PublicURL}
	for _, f := range change {
		f(&o)
	}
	c, err := core.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &Bench{TB: t, Core: c}
	b.App, b.Key = b.NewApp("crawler")
	return b
}

// NewApp makes a further app with the same manifest.
func (b *Bench) NewApp(id string) (wake.App, credential.AppKey) {
	b.Helper()
	app, err := b.Core.CreateApp(b.Context(), id, "")
	if err != nil {
		b.Fatal(err)
	}
	_, key, err := b.Core.CreateKey(b.Context(), id, "")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := b.Core.PutManifest(b.Context(), app, json.RawMessage(Manifest)); err != nil {
		b.Fatal(err)
	}
	return app, key
}

// Subscribe subscribes a caller to a crawl of that job.
func (b *Bench) Subscribe(call wake.Call, job string, once bool) core.Subscribed {
	b.Helper()
	done, err := b.Core.SubscribeEvent(b.Context(), b.App, call, "crawl.finished", json.RawMessage(`{"job":"`+job+`"}`), once)
	if err != nil {
		b.Fatal(err)
	}
	return done
}

// Emit emits that a crawl of that job finished, with this payload and text.
func (b *Bench) Emit(job, payload, text string) core.Emitted {
	b.Helper()
	done, err := b.Core.Emit(b.Context(), b.App, core.Emit{Name: "crawl.finished", Arguments: json.RawMessage(`{"job":"` + job + `"}`),
		Payload: json.RawMessage(payload), Text: text})
	if err != nil {
		b.Fatal(err)
	}
	return done
}
