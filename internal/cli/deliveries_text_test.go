package cli

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/adminapi"
)

// golden compares a text with a file's, or writes the file anew.
func golden(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if diff := cmp.Diff(string(want), text); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestDeliveriesInWords(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 17, 59, 58, 0, time.Local)
	const webhook = "sub_abcdefghijklmnopqrstuvwxyz234567"
	var text strings.Builder
	listDeliveries(&text, []adminapi.Delivery{
		{ID: "dlv_5", At: at.Add(time.Hour), Webhook: webhook, Event: "crawl.finished", Notice: "gap", Host: "hooks.example.com", Try: 1, Status: 204, TookMS: 31, Outcome: "delivered"},
		{ID: "dlv_4", At: at.Add(time.Minute), Webhook: webhook, Event: "crawl.finished", EventID: "evt_dydt1", Host: "hooks.example.com", Try: 9, Category: "timeout", TookMS: 10000, Outcome: "abandoned"},
		{ID: "dlv_3", At: at, Webhook: webhook, Event: "crawl.finished", EventID: "evt_dydt1", Host: "hooks.example.com", Try: 1, Status: 503, Category: "http_5xx", TookMS: 120, Outcome: "retrying", NextAt: at.Add(5 * time.Second)},
	})
	golden(t, "testdata/deliveries.golden", text.String())
	text.Reset()
	if listDeliveries(&text, nil); text.Len() != 0 {
		t.Errorf("of none: %q", text.String())
	}
}

func TestReplaysInWords(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, said := range []struct {
		what adminapi.Replay
		done adminapi.Replayed
	}{
		{adminapi.Replay{Webhook: "sub_abc", Event: "evt_dydt1"}, adminapi.Replayed{Queued: 1}},
		{adminapi.Replay{Webhook: "sub_abc", Event: "evt_dydt1"}, adminapi.Replayed{}},
		{adminapi.Replay{Webhook: "sub_abc", From: "evt_dydt1"}, adminapi.Replayed{Queued: 2, Gone: 1, Truncated: true, Suspended: true}},
		{adminapi.Replay{Webhook: "sub_abc", From: "evt_dydt1", To: "evt_dydt9"}, adminapi.Replayed{Queued: 5000, More: true, Next: "evt_dydt5"}},
		{adminapi.Replay{Webhook: "sub_abc", Since: time.Now()}, adminapi.Replayed{More: true, Next: "evt_dydt5"}},
	} {
		text.WriteString("--\n")
		for _, remark := range replayRemarks(said.what, said.done) {
			text.WriteString(remark + "\n")
		}
	}
	golden(t, "testdata/replays.golden", text.String())
}

func TestDeliveriesHelp(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, args := range [][]string{{"deliveries", "--help"}, {"deliveries", "replay", "--help"}} {
		if status := Run(t.Context(), Env{Args: args, Stdout: &text, Stderr: &text}); status != 0 {
			t.Errorf("status %d", status)
		}
	}
	golden(t, "testdata/deliveries-help.golden", text.String())
}
