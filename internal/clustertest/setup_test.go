package clustertest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
)

func TestMain(m *testing.M) {
	status := pgtest.Run(m)
	if err := rouse.remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// await receives, and fails the test when nothing comes.
func await[T any](t testing.TB, what string, c <-chan T) (v T) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v = <-c:
	case <-timer.C:
		t.Fatalf("%s: nothing came within %s", what, patience)
	}
	return v
}
