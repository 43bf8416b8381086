package harness_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/wake"
)

var offers = []harness.Offer{
	{Name: "build.finished", Description: "A build ended, well or not", Arguments: `{"type":"object","properties":{"branch":{"type":"string"}}}`},
	{Name: "site.updated", Description: "A site changed", Arguments: `{"type":"object","properties":{"site":{"type":"string"}},"required":["site"]}`},
}

func manyOffers(n int) (many []harness.Offer) {
	for i := range n {
		many = append(many, harness.Offer{Name: fmt.Sprintf("event.e%04d", i), Description: "One of many", Arguments: `{"type":"object"}`})
	}
	return many
}

func TestEventToolTexts(t *testing.T) {
	t.Parallel()
	tools := map[string]string{}
	for _, tool := range harness.EventTools("Crawler", offers) {
		tools[tool.Name] = tool.Title + "\n\n" + tool.Description + "\n\n" + string(tool.InputSchema)
	}
	holdings := []harness.Holding{
		{ID: "sub_1", What: "site.updated", Arguments: `{"site":"a"}`},
		{ID: "sub_2", What: "topic builds", Once: true},
	}
	elsewhere := []harness.Holding{
		{ID: "sub_3", What: "site.updated", Arguments: `{"site":"b"}`, Where: harness.AnotherConversation},
		{ID: "sub_4", What: "build.finished", Arguments: `{}`, Where: harness.AtWebhook("hooks.example.com")},
	}
	for name, got := range map[string]string{
		"tool-subscribe-events":   tools[harness.SubscribeEvents],
		"tool-unsubscribe-events": tools[harness.UnsubscribeEvents],
		"tool-list-subscriptions": tools[harness.ListSubscriptions],
		"tool-many-events":        harness.EventTools("Crawler", manyOffers(100))[0].Description,
		"subscribed":              harness.SubscribedText(`site.updated {"site":"a"}`, "sub_1", true),
		"subscribed-again":        harness.SubscribedText(`site.updated {"site":"a"}`, "sub_1", false),
		"unsubscribed":            harness.UnsubscribedText("sub_1", true),
		"unsubscribed-nothing":    harness.UnsubscribedText(`site.updated {"site":"a"}`, false),
		"holdings":                harness.HoldingsText(holdings, elsewhere, 3, offers),
		"holdings-none":           harness.HoldingsText(nil, nil, 0, nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, got)
		})
	}
}

func TestEventToolSchemas(t *testing.T) {
	t.Parallel()
	for _, tool := range harness.EventTools("Crawler", offers) {
		var schema jsonschema.Schema
		if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
			t.Fatalf("%s: %v", tool.Name, err)
		}
		if _, err := schema.Resolve(nil); err != nil || schema.Type != "object" {
			t.Errorf("%s: type %q, %v", tool.Name, schema.Type, err)
		}
	}
}

// What every agent reads at its start stays short, however many events there are and whatever their apps say of them.
func TestOffersAreBounded(t *testing.T) {
	t.Parallel()
	long := manyOffers(2000)
	for i := range long {
		long[i].Description = strings.Repeat("long ", 60)
		long[i].Arguments = `{"x":"` + strings.Repeat("y", 100*i) + `"}`
	}
	for name, offers := range map[string][]harness.Offer{"many": manyOffers(2000), "long": long, "longest": long[1999:], "none": nil} {
		if n := len(harness.EventTools("Crawler", offers)[0].Description); n > 5<<10 {
			t.Errorf("%s: a description of %d bytes", name, n)
		}
		if n := len(harness.HoldingsText(nil, nil, 0, offers)); n > 34<<10 {
			t.Errorf("%s: a list of %d bytes", name, n)
		}
	}
	// Each is found by going on after the last one that was shown.
	left := manyOffers(250)
	for pages := 1; len(left) > 0; pages++ {
		text := harness.HoldingsText(nil, nil, 0, left)
		shown := strings.Count(text, "\n- ")
		if shown == 0 || pages > 10 {
			t.Fatalf("%d events are never shown", len(left))
		}
		if last := fmt.Sprintf("after %q", left[shown-1].Name); shown < len(left) && !strings.Contains(text, last) {
			t.Fatalf("the rest is not found: %s", text[len(text)-200:])
		}
		left = left[shown:]
	}
}

func TestWhoIsOfferedEventTools(t *testing.T) {
	t.Parallel()
	native := []string{harness.EventsExtension}
	for name, test := range map[string]struct {
		call wake.Call
		want bool
	}{
		"nobody known":               {wake.Call{}, true},
		"Claude Code":                {wake.Call{Client: "claude-code"}, true},
		"a native client":            {wake.Call{Client: "x", Extensions: native}, false},
		"a known one that is native": {wake.Call{Client: "claude-code", Extensions: native}, false},
		"ChatGPT":                    {wake.Call{Client: "openai-mcp"}, true},
		"ChatGPT, signed in":         {wake.Call{Client: "openai-mcp", User: "ada"}, false},
		"ChatGPT, declaring it":      {wake.Call{Client: "openai-mcp", Extensions: native}, true},
		"another extension":          {wake.Call{Client: "x", Extensions: []string{"x/y"}}, true},
	} {
		if got := harness.OffersEventTools(test.call); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
