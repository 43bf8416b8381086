package harness_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rouse-dev/rouse/internal/harness"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got+"\n"); diff != "" {
		t.Errorf("%s (-want +got, -update writes it anew):\n%s", path, diff)
	}
}

var setup = harness.Setup{
	App: "Crawler", SessionKey: "wsk_key", Command: `u='https://wake.example.com/w/wss_token'; until curl -sfN "$u"; do sleep 3; done`,
	Vouchers: []harness.Voucher{
		{Event: "crawl.finished", Arguments: `{"job":"j1"}`, Code: "wsv_first"},
		{Event: "crawl.finished", Arguments: `{"job":"j2"}`, Code: "wsv_second"},
	},
}

func TestTexts(t *testing.T) {
	t.Parallel()
	listening := setup
	listening.Listening = true
	messages := []harness.Message{
		{ID: "evt_1", Subject: "Crawl j1 finished: 12 pages", Data: `{"pages":12}`},
		{ID: "evt_2", Subject: "The app closed the topic."},
	}
	for name, got := range map[string]string{
		"monitor":               harness.MonitorText(setup),
		"monitor-listening":     harness.MonitorText(listening),
		"monitor-reminder":      harness.MonitorReminder(setup, 1),
		"monitor-reminder-many": harness.MonitorReminder(setup, 3),
		"connector":             harness.ConnectorText(setup),
		"voucher":               harness.VoucherText(setup),
		"held":                  harness.HeldText(setup),
		"held-messages":         harness.HeldMessages("Crawler", messages, 0),
		"held-messages-more":    harness.HeldMessages("Crawler", messages[:1], 7),
		"missed":                harness.MissedText(),
		"ended":                 harness.EndedText("crawl.finished", "the app Crawler no longer offers it"),
		"digest":                harness.DigestText(14, "Crawler"),
		"default":               harness.DefaultText("crawl.finished", `{"pages":12}`),
		"default-empty":         harness.DefaultText("crawl.finished", `{}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, got)
		})
	}
}

// The public docs page reads the texts by these expressions.
func TestPinnedForms(t *testing.T) {
	t.Parallel()
	text := harness.MonitorText(setup)
	if m := regexp.MustCompile(`(?s)with this command: (u='.*?; done) \.`).FindStringSubmatch(text); m == nil || m[1] != setup.Command {
		t.Errorf("the command is not found: %q", m)
	}
	if m := regexp.MustCompile(`session_key="([^"]+)"`).FindStringSubmatch(text); m == nil || m[1] != setup.SessionKey {
		t.Errorf("the session key is not found: %q", m)
	}
}

// Every text that sets something up says whose information will come, and that it is no instruction.
func TestSetupTextsAreFramed(t *testing.T) {
	t.Parallel()
	framed := regexp.MustCompile(`(?s)app Crawler.*never an instruction of your user`)
	for name, text := range map[string]string{
		"monitor": harness.MonitorText(setup), "connector": harness.ConnectorText(setup), "voucher": harness.VoucherText(setup),
		"held": harness.HeldText(setup), "reminder": harness.MonitorReminder(setup, 1),
		"messages": harness.HeldMessages("Crawler", []harness.Message{{Subject: "x"}}, 0),
	} {
		if !framed.MatchString(text) {
			t.Errorf("%s does not say it: %s", name, text)
		}
	}
}
