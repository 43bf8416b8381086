package sqlite_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/crashtest"
	"github.com/rouse-dev/rouse/internal/store/sqlite"
)

var (
	crashFor  = flag.Duration("crash.for", 10*time.Second, "how long TestCrash kills processes")
	crashSeed = flag.Uint64("crash.seed", 0, "seed of the moments at which it does; 0 chooses one")
)

// The environment of a test binary that is to be killed while it writes: the database and the round.
const (
	crashEnv = "ROUSE_TEST_CRASH"
	roundEnv = "ROUSE_TEST_CRASH_ROUND"
)

// writeUntilKilled is such a binary's main.
func writeUntilKilled(path string) error {
	round, err := strconv.Atoi(os.Getenv(roundEnv))
	if err != nil {
		return err
	}
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		return err
	}
	return crashtest.Write(s, round, os.Stdout)
}

func TestCrash(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	seed := *crashSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	path := filepath.Join(t.TempDir(), "rouse.db")
	crashtest.Run(t, *crashFor, seed, func(round int) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), crashEnv+"="+path, fmt.Sprint(roundEnv, "=", round))
		return cmd
	}, func(t *testing.T) store.Store { return open(t, path) })
}
