package clustertest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/wake"
)

// nativeLine is a connection of the app at a node, with one stream of ada's to the site s.
func (c *cluster) nativeLine(node int, since core.Since) *core.NativeStreams {
	c.Helper()
	line, err := c.nodes[node].NativeStreams(c.app)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(line.Close)
	ask := core.Native{Call: wake.Call{User: "ada"}, Name: "site.updated", Arguments: json.RawMessage(`{"site":"s"}`)}
	if err := line.Open(c.Context(), 1, ask, since); err != nil {
		c.Fatal(err)
	}
	return line
}

// hear gives the next notice, of that kind, before a heartbeat is due: a hint must have told of it.
func (c *cluster) hear(line *core.NativeStreams, want core.NoticeKind) core.NativeNotice {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	n, err := line.Next(ctx)
	if err != nil || n.Kind != want {
		c.Fatalf("%+v, %v", n, err)
	}
	return n
}

func (c *cluster) site(node int, pages int) {
	c.Helper()
	if _, err := c.nodes[node].Emit(c.Context(), c.app, core.Emit{Name: "site.updated", Arguments: json.RawMessage(`{"site":"s"}`),
		Payload: fmt.Appendf(nil, `{"pages":%d}`, pages), Text: "changed"}); err != nil {
		c.Fatal(err)
	}
}

// A native stream is told what happens at another node, goes on at another from its cursor, and ends when its user is
// forgotten at another, or another takes a manifest without its event.
func TestNativeStreamsAtOtherNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	line := c.nativeLine(1, core.Since{})
	begin := c.hear(line, core.NoticeActive)
	c.site(0, 1)
	c.hear(line, core.NoticeEvent)
	again := c.nativeLine(0, core.Since{Cursor: &begin.Cursor})
	if n := c.hear(again, core.NoticeActive); n.Truncated {
		t.Error("truncated, although nothing is lost")
	}
	for pages := 1; pages <= 2; pages++ {
		var event struct{ Data struct{ Pages int } }
		if n := c.hear(again, core.NoticeEvent); json.Unmarshal(n.Event, &event) != nil || event.Data.Pages != pages {
			t.Errorf("%s, want %d pages", n.Event, pages)
		}
		c.site(1, pages+1)
		c.hear(line, core.NoticeEvent)
	}
	c.hear(again, core.NoticeEvent)
	if _, err := c.nodes[0].ForgetUser(t.Context(), c.app, "ada"); err != nil {
		t.Fatal(err)
	}
	for _, one := range []*core.NativeStreams{line, again} {
		c.hear(one, core.NoticeTerminated)
		c.hear(one, core.NoticeEnd)
	}
	line, again = c.nativeLine(1, core.Since{}), c.nativeLine(0, core.Since{})
	c.hear(line, core.NoticeActive)
	c.hear(again, core.NoticeActive)
	if _, err := c.nodes[0].PutManifest(t.Context(), c.app, json.RawMessage(`{"events":[]}`)); err != nil {
		t.Fatal(err)
	}
	for _, one := range []*core.NativeStreams{line, again} {
		c.hear(one, core.NoticeTerminated)
		c.hear(one, core.NoticeEnd)
	}
}
