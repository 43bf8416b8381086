package wakeshift_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	wakeshift "github.com/rouse-dev/rouse/sdk/go"
)

var update = flag.Bool("update", false, "write golden files")

// serveStdio makes the test binary a stdio server of its own; see stdio_test.go.
const serveStdio = "WAKESHIFT_TEST_SERVE_STDIO"

func TestMain(m *testing.M) {
	if os.Getenv(serveStdio) != "" {
		os.Exit(runStdioServer())
	}
	if os.Getenv(serveStreams) != "" {
		os.Exit(runStreamsServer())
	}
	// net/http lingers half a second on a connection whose request it refused unread.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// golden compares got with testdata/name, or writes it there with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got, -update to accept):\n%s", path, diff)
	}
}

// newKey makes an app key of the current form, and its public half.
func newKey() (string, ed25519.PublicKey) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	return formatKey(private.Seed()), public
}

func formatKey(seed []byte) string {
	data := binary.BigEndian.AppendUint32(append([]byte(nil), seed...), crc32.ChecksumIEEE(seed))
	const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	digits := make([]byte, 50)
	number, base, digit := new(big.Int).SetBytes(data), big.NewInt(58), new(big.Int)
	for i := len(digits) - 1; i >= 0; i-- {
		number.DivMod(number, base, digit)
		digits[i] = alphabet[digit.Int64()]
	}
	return "wst_" + string(digits)
}

// Events used by many tests.

type crawlArgs struct {
	Job string `json:"job"`
}

type crawl struct {
	Pages int `json:"pages"`
}

type siteArgs struct {
	Site string `json:"site"`
}

func crawlText(p crawl, a crawlArgs) string {
	return fmt.Sprintf("Crawl %s finished: %d pages", a.Job, p.Pages)
}

func crawlEvent() wakeshift.EventDef[crawlArgs, crawl] {
	return wakeshift.EventDef[crawlArgs, crawl]{Description: "A crawl finished", Text: crawlText}
}

func siteEvent() wakeshift.EventDef[siteArgs, crawl] {
	return wakeshift.EventDef[siteArgs, crawl]{
		Description: "A site changed",
		Public:      true,
		Text:        func(p crawl, a siteArgs) string { return fmt.Sprintf("Site %s updated: %d pages", a.Site, p.Pages) },
	}
}

func define[A, P any](t testing.TB, wake *wakeshift.Wakeshift, name string, def wakeshift.EventDef[A, P]) *wakeshift.Event[A, P] {
	t.Helper()
	e, err := wakeshift.DefineEvent(wake, name, def)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// newWake makes a client of the core, closed with the test.
func newWake(t testing.TB, core *fakeCore, opts ...wakeshift.Option) *wakeshift.Wakeshift {
	t.Helper()
	opts = append([]wakeshift.Option{wakeshift.WithKey(core.key), wakeshift.WithCore(core.URL), wakeshift.WithLogger(quiet)}, opts...)
	wake, err := wakeshift.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := wake.Close(); err != nil {
			t.Error(err)
		}
	})
	return wake
}

type userKey struct{}

// headerUser identifies by the header X-User, as the tests' HTTP clients send it,
// or by a value of the context where there are no headers.
func headerUser(ctx context.Context, r *wakeshift.Request) wakeshift.Identity {
	if user, ok := ctx.Value(userKey{}).(string); ok {
		return wakeshift.Identity{User: user}
	}
	return wakeshift.Identity{User: r.Header.Get("X-User")}
}
