package bench

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/credential"
)

// personalManifest has an event for one user.
const personalManifest = `{"events":[{"name":"your.turn","description":"It is your turn","topic":"ev/your.turn/{game}","personal":true,
	"arguments":{"type":"object","properties":{"game":{"type":"string"}},"required":["game"]},"payload":{"type":"object"}}]}`

// BenchmarkForget forgets a user with 10,000 occurrences, until they are in none of the database's files.
func BenchmarkForget(b *testing.B) {
	const occurrences = 10_000
	database := openStore(b)
	defer database.Close()
	c, err := core.New(b.Context(), core.Options{Store: database, Master: credential.NewMaster([32]byte{1}), PublicURL: "http://core.test"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	app, err := c.CreateApp(b.Context(), "app", "")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.PutManifest(b.Context(), app, json.RawMessage(personalManifest)); err != nil {
		b.Fatal(err)
	}
	batch := make([]core.Emit, core.MaxBatch)
	for i := range batch {
		batch[i] = core.Emit{Name: "your.turn", Arguments: json.RawMessage(`{"game":"g"}`), To: "ada",
			Payload: json.RawMessage(`{"note":"` + strings.Repeat("n", 500) + `"}`)}
	}
	for b.Loop() {
		b.StopTimer()
		for range occurrences / len(batch) {
			if _, err := c.EmitBatch(b.Context(), app, batch); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		if forgotten, err := c.ForgetUser(b.Context(), app, "ada"); err != nil || !forgotten {
			b.Fatal(forgotten, err)
		}
		if err := c.Scrub(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
