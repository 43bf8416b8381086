package demo_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/demo"
	"github.com/rouse-dev/rouse/internal/trace"
)

// net/http lingers half a second on a connection whose request it refused unread, whoever shuts down meanwhile.
var lingering = goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, lingering) }

var update = flag.Bool("update", false, "write the golden file anew")

// varying is what differs from run to run.
var varying = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`/w/[A-Za-z0-9_-]+`), "/w/TOKEN"},
	{regexp.MustCompile(`[\d.]+ ms`), "N ms"},
	{regexp.MustCompile(`[\d.]+ s\.`), "N s."},
	{regexp.MustCompile(`evt_[a-z2-7]{4}`), "evt_EPOCH"},
	{regexp.MustCompile(`sleep \d`), "sleep N"},
}

func TestOnce(t *testing.T) {
	temporary := privateTemp(t)
	var out bytes.Buffer
	if err := demo.Run(t.Context(), demo.Options{Out: &out, Once: true}); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	got := out.String()
	for _, v := range varying {
		got = v.pattern.ReplaceAllString(got, v.instead)
	}
	golden := filepath.Join("testdata", "once.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	nothingLeft(t, temporary)
}

// The app that is left running is one that a real agent could use.
func TestItServesUntilInterrupted(t *testing.T) {
	temporary := privateTemp(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address := regexp.MustCompile(`curl -d '([^']+)' (http\S+/crawls/j2)`)
	var out bytes.Buffer
	var kinds []trace.Kind
	// The demo writes and watches in one goroutine, so that nothing here is shared.
	o := demo.Options{Out: &out, Watch: func(entry trace.Entry) error {
		if kinds = append(kinds, entry.Kind); entry.Kind == trace.Emitted {
			cancel()
			return nil
		}
		if len(kinds) > 1 {
			return nil
		}
		found := address.FindStringSubmatch(out.String())
		if found == nil {
			return errors.New("it does not say how to finish a crawl")
		}
		response, err := http.Post(found[2], "application/json", strings.NewReader(found[1]))
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}}
	if err := demo.Run(ctx, o); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, wanted := range []string{"claude mcp add --transport http crawler http://127.0.0.1:", "/mcp\n"} {
		if !strings.Contains(out.String(), wanted) {
			t.Errorf("it does not say %q:\n%s", wanted, &out)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	nothingLeft(t, temporary)
}

func TestItSaysWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := demo.Run(t.Context(), demo.Options{Out: new(bytes.Buffer), Once: true})
	if err == nil || !strings.Contains(err.Error(), "install") {
		t.Errorf("without sh and curl: %v", err)
	}
}

// privateTemp gives the test a directory for temporary files of its own.
func privateTemp(t *testing.T) string {
	t.Helper()
	directory, err := os.MkdirTemp("", "rouse")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	t.Setenv("TMPDIR", directory)
	return directory
}

func nothingLeft(t *testing.T, directory string) {
	t.Helper()
	if left, err := os.ReadDir(directory); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
