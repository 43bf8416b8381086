package core_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/wake"
)

// Every code of the catalogue has a JSON-RPC error in every dialect. Those not named here cannot come of a native request, or are
// not the client's doing.
func TestEveryCodeInEveryDialect(t *testing.T) {
	t.Parallel()
	type wire struct {
		draft, chatGPT int
		data           map[string]any
	}
	named := map[refusal.Code]wire{
		refusal.BadRequest:          {-32602, -32602, nil},
		refusal.BadArguments:        {-32602, -32602, nil},
		refusal.BadPayload:          {-32602, -32602, nil},
		refusal.TooLarge:            {-32602, -32602, nil},
		refusal.UnknownEvent:        {-32023, -32011, map[string]any{"kind": "event"}},
		refusal.UnknownSubscription: {-32023, -32011, map[string]any{"kind": "subscription"}},
		refusal.Forbidden:           {-32024, -32012, map[string]any{"reason": "timeout"}},
		refusal.UnknownSession:      {-32024, -32012, map[string]any{"reason": "timeout"}},
		refusal.SubscriptionLimit:   {-32025, -32013, map[string]any{"limit": "subscriptions"}},
		refusal.RateLimited:         {-32025, -32013, map[string]any{"limit": "timeout"}}, // the reason is which
		refusal.Unsupported:         {-32026, -32014, map[string]any{"feature": "deliveryMode"}},
		refusal.CallbackFailed:      {-32027, -32015, map[string]any{"reason": "timeout"}},
	}
	for _, entry := range refusal.All() {
		want, ok := named[entry.Code]
		if !ok {
			want = wire{-32603, -32603, nil}
		}
		// Whoever passes it on may have wrapped it.
		err := fmt.Errorf("subscribing: %w", refusal.New(entry.Code, "in words").WithReason("timeout"))
		for name, code := range map[string]int{core.DialectDraft: want.draft, core.DialectChatGPT: want.chatGPT, core.DialectFinal: want.draft} {
			d, ok := core.DialectNamed(name)
			if diff := cmp.Diff(&core.WireError{Code: code, Message: "in words", Data: want.data}, d.ErrorOf(err)); diff != "" || !ok || d.Name != name {
				t.Errorf("%s in %s: %s", entry.Code, name, diff)
			}
			if got := d.ErrorOf(errors.New("the disk is on fire")); got != nil {
				t.Errorf("a fault is told: %+v", got)
			}
		}
	}
}

func TestWhatARefusalIsAboutIsTold(t *testing.T) {
	t.Parallel()
	d, _ := core.DialectNamed(core.DialectDraft)
	no := refusal.New(refusal.Unsupported, "no").With("feature", "payloadSchema").With("reason", "schema_changed")
	if diff := cmp.Diff(map[string]any{"feature": "payloadSchema", "reason": "schema_changed"}, d.ErrorOf(no).Data); diff != "" {
		t.Error(diff)
	}
	full := refusal.New(refusal.SubscriptionLimit, "no").With("max", 7)
	if diff := cmp.Diff(map[string]any{"limit": "subscriptions", "max": 7}, d.ErrorOf(full).Data); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"limit": "requests"}, d.ErrorOf(refusal.New(refusal.RateLimited, "no")).Data); diff != "" {
		t.Error(diff)
	}
	if got := d.ErrorOf(refusal.New(refusal.Forbidden, "no")).Data; got != nil {
		t.Errorf("a reason that nobody gave: %v", got)
	}
}

func TestTheDialectOfAClient(t *testing.T) {
	t.Parallel()
	for client, want := range map[string]string{"openai-mcp": core.DialectChatGPT, "some-client": core.DialectDraft, "": core.DialectDraft} {
		if got := core.DialectOf(wake.Call{Client: client}).Name; got != want {
			t.Errorf("%q speaks %s, want %s", client, got, want)
		}
	}
	for name, want := range map[string]struct {
		known     bool
		messageID bool
	}{"draft": {true, false}, "chatgpt": {true, false}, "final": {true, true}, "": {}, "klingon": {}, "Draft": {}} {
		d, ok := core.DialectNamed(name)
		if ok != want.known || d.MessageID != want.messageID {
			t.Errorf("%q: %+v, %v", name, d, ok)
		}
	}
}
