package native

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/refusal"
)

// Every code of the catalogue has a JSON-RPC error in both dialects. Those not named here cannot come of a native request, or are
// not the client's doing.
func TestEveryCodeInBothDialects(t *testing.T) {
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
		refusal.Forbidden:           {-32024, -32012, nil},
		refusal.UnknownSession:      {-32024, -32012, nil},
		refusal.SubscriptionLimit:   {-32025, -32013, map[string]any{"limit": "subscriptions"}},
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
		for name, code := range map[string]int{core.DialectDraft: want.draft, core.DialectChatGPT: want.chatGPT} {
			if diff := cmp.Diff(&Error{code, "in words", want.data}, dialects[name].errorOf(err)); diff != "" {
				t.Errorf("%s in %s: %s", entry.Code, name, diff)
			}
		}
	}
	if got := dialects[core.DialectDraft].errorOf(errors.New("the disk is on fire")); got != nil {
		t.Errorf("a fault is told: %+v", got)
	}
}
