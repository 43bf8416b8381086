package cli_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/adminapi"
	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
	"github.com/rouse-dev/rouse/internal/wake"
)

// attempted starts a core with the app crawler, of which one event was tried to deliver twice to a suspended webhook, and returns
// the environment for commands and the event's id.
func attempted(t *testing.T) (environ []string, event string) {
	t.Helper()
	data := dataDir(t)
	database, err := sqlite.Open(t.Context(), filepath.Join(data, "rouse.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Close() })
	c, err := core.New(t.Context(), core.Options{Store: database, Master: credential.NewMaster([32]byte{1}), PublicURL: "http://core.test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	listener, err := adminapi.Listen(data)
	if err != nil {
		t.Fatal(err)
	}
	server, served := &http.Server{Handler: adminapi.New(c, adminapi.Options{})}, make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	app, err := c.CreateApp(t.Context(), "crawler", "")
	if err != nil {
		t.Fatal(err)
	}
	manifest := `{"events":[{"name":"site.updated","description":"A site","topic":"sites","arguments":{"type":"object","properties":{}},"payload":{"type":"object"}}]}`
	if _, err := c.PutManifest(t.Context(), app, json.RawMessage(manifest)); err != nil {
		t.Fatal(err)
	}
	done, err := c.Emit(t.Context(), app, core.Emit{Name: "site.updated", Arguments: json.RawMessage(`{}`), Payload: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := database.Update(t.Context(), func(tx store.Tx) error {
		if err := tx.PutWebhook(wake.Webhook{ID: "sub_hook", App: app.ID, URL: "https://hooks.example.com/secret", Event: "site.updated", Topic: "sites", Suspended: true}); err != nil {
			return err
		}
		if err := tx.RecordAttempt(wake.Attempt{Webhook: "sub_hook", Seq: 1, Number: 1, At: time.Now(), Reason: "timeout", Outcome: wake.AttemptRetrying}); err != nil {
			return err
		}
		return tx.RecordAttempt(wake.Attempt{Webhook: "sub_hook", Seq: 1, Number: 2, At: time.Now(), Status: 200, Outcome: wake.AttemptDelivered})
	}); err != nil {
		t.Fatal(err)
	}
	return append(bare(t), "ROUSE_DATA="+data), done.ID
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	environ, event := attempted(t)
	run := func(args ...string) result {
		t.Helper()
		return runIn(t.Context(), environ, "", append([]string{"deliveries"}, args...)...)
	}
	got := run()
	if got.status != 0 || got.errOut != "" || strings.Count(got.out, "\n") != 3 || !strings.Contains(got.out, "hooks.example.com ") || strings.Contains(got.out, "secret") {
		t.Errorf("all: %+v", got)
	}
	for _, args := range [][]string{{"--failed"}, {"--webhook", "sub_hook", "--before", "dlv_2"}, {"--failed", "--subscription", "sub_hook", "--event", event}} {
		got := run(append(args, "--json")...)
		var list struct{ Deliveries []adminapi.Delivery }
		if err := json.Unmarshal([]byte(got.out), &list); err != nil || len(list.Deliveries) != 1 || list.Deliveries[0].ID != "dlv_1" || list.Deliveries[0].EventID != event {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := run("--limit", "1"); got.status != 0 || !strings.Contains(got.errOut, "--before dlv_2") {
		t.Errorf("a page: %+v", got)
	}
	if got := run("--before", "dlv_1"); got.status != 0 || got.out != "" || !strings.Contains(got.errOut, "rouse subscriptions") {
		t.Errorf("none: %+v", got)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	environ, event := attempted(t)
	for _, args := range [][]string{
		{"--delivery", "dlv_1"}, {"--webhook", "sub_hook", "--event", event}, {"--webhook", "sub_hook", "--from", event, "--to", event}, {"--webhook", "sub_hook", "--since", "1h"},
	} {
		for range 2 {
			got := runIn(t.Context(), environ, "", append([]string{"deliveries", "replay"}, args...)...)
			if got.status != 0 || got.out != "queued 1\n" || !strings.Contains(got.errOut, "suspended") {
				t.Errorf("%v: %+v", args, got)
			}
		}
	}
	if got := runIn(t.Context(), environ, "", "deliveries", "replay", "--delivery", "dlv_1", "--json"); got.out != `{"queued":1,"gone":0,"more":false,"suspended":true}`+"\n" {
		t.Errorf("in JSON: %+v", got)
	}
}

func TestDeliveriesRefusals(t *testing.T) {
	t.Parallel()
	environ, event := attempted(t)
	tests := map[string]struct {
		args   []string
		status int
		want   string
	}{
		"an argument":        {[]string{"sub_hook"}, 2, `"sub_hook" is one argument too many`},
		"limit":              {[]string{"--limit", "0"}, 2, "--limit must be from 1 to 1000"},
		"two webhooks":       {[]string{"--webhook", "a", "--subscription", "b"}, 2, "name one"},
		"no such webhook":    {[]string{"--webhook", "sub_none"}, 1, "rouse subscriptions --json"},
		"an app's event id":  {[]string{"--event", "mine"}, 1, "name the webhook too"},
		"no such app":        {[]string{"--app", "nobody"}, 1, `no app "nobody"`},
		"replay nothing":     {[]string{"replay", "--webhook", "sub_hook"}, 2, "one of --delivery, --event, --from and --since"},
		"replay two things":  {[]string{"replay", "--webhook", "sub_hook", "--event", event, "--since", "1h"}, 2, "one of"},
		"replay an end only": {[]string{"replay", "--webhook", "sub_hook", "--event", event, "--to", event}, 2, "--to needs --from"},
		"replay to nobody":   {[]string{"replay", "--event", event}, 2, "--webhook is missing"},
		"replay the future":  {[]string{"replay", "--webhook", "sub_hook", "--since", "-1h"}, 2, "--since must be"},
		"replay no event":    {[]string{"replay", "--webhook", "sub_hook", "--event", "evt_none"}, 1, "rouse deliveries --webhook sub_hook"},
		"replay no delivery": {[]string{"replay", "--delivery", "dlv_9"}, 1, "`rouse deliveries` lists"},
	}
	for name, test := range tests {
		got := runIn(t.Context(), environ, "", append([]string{"deliveries"}, test.args...)...)
		if got.status != test.status || !strings.Contains(got.errOut, test.want) || got.out != "" {
			t.Errorf("%s: %+v; want status %d and %q", name, got, test.status, test.want)
		}
	}
}
