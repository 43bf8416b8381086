// Package internal_test holds the rules between packages, which no package can test by itself.
package internal_test

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/rouse-dev/rouse/"

// layers from the innermost outwards; a package imports none of its own line or a later one.
var layers = [][]string{
	{"internal/refusal", "internal/strictjson", "internal/bus", "internal/trace", "internal/quota", "internal/postgres"},
	{"internal/wake", "internal/credential", "internal/bus/postgres"},
	{"internal/harness", "internal/store"},
	{"internal/store/group", "internal/store/topiccache"},
	{"internal/store/storetest", "internal/store/sqlite", "internal/store/postgres"},
	{"internal/store/crashtest", "internal/store/postgres/pgtest"},
	{"internal/core"},
	{"internal/core/coretest"},
	{"internal/wakepath/monitor", "internal/wakepath/connector", "internal/wakepath/webhook", "internal/wakepath/native"},
	{"internal/appapi", "internal/publish", "internal/config"},
	{"internal/adminapi"},
	{"internal/server"},
	{"rousetest"},
	{"internal/demo"},
	{"internal/cli"},
	{"cmd/rouse"},
}

func TestDependenciesPointInward(t *testing.T) {
	t.Parallel()
	layer := map[string]int{}
	for i, names := range layers {
		for _, name := range names {
			layer[name] = i
		}
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		names := strings.Fields(line)
		from := strings.TrimPrefix(names[0], module)
		at, ok := layer[from]
		if strings.HasPrefix(from, "internal/store/sqlite/internal/") || strings.HasPrefix(from, "internal/store/postgres/internal/") || strings.HasPrefix(from, "examples/") ||
			from == "bench" || from == "internal" || from == "internal/sdktest" || from == "internal/eventstest" ||
			from == "internal/eventsclienttest" || from == "internal/clustertest" {
			continue
		}
		if !ok {
			t.Errorf("%s has no layer: give it one, and see that docs/architecture.md has it", from)
			continue
		}
		for _, name := range names[1:] {
			to := strings.TrimPrefix(name, module)
			if reached, known := layer[to]; known && reached >= at {
				t.Errorf("%s imports %s, which lies outside it", from, to)
			}
		}
	}
}

// The store and the bus are the core's: everything else goes through it.
func TestOnlyTheCoreUsesStoreAndBus(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{"internal/core": true, "internal/core/coretest": true, "internal/server": true,
		"internal/store/sqlite": true, "internal/store/storetest": true, "internal/bus/postgres": true}
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		names := strings.Fields(line)
		from := strings.TrimPrefix(names[0], module)
		for _, name := range names[1:] {
			to := strings.TrimPrefix(name, module)
			if (to == "internal/bus" || to == "internal/store" || strings.HasPrefix(to, "internal/store/")) && !allowed[from] &&
				!strings.HasPrefix(from, "internal/store/") {
				t.Errorf("%s imports %s", from, to)
			}
		}
	}
}
