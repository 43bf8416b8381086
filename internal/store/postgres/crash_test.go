package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	database "github.com/rouse-dev/rouse/internal/postgres"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/crashtest"
	"github.com/rouse-dev/rouse/internal/store/postgres"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
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
func writeUntilKilled(address string) error {
	round, err := strconv.Atoi(os.Getenv(roundEnv))
	if err != nil {
		return err
	}
	d, err := database.Open(context.Background(), address)
	if err != nil {
		return err
	}
	s, err := postgres.Open(context.Background(), d, postgres.Options{})
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
	address := pgtest.Database(t)
	crashtest.Run(t, *crashFor, seed, func(round int) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), crashEnv+"="+address, fmt.Sprint(roundEnv, "=", round))
		return cmd
	}, func(t *testing.T) store.Store {
		// Its last transaction may still be under way: the test looks at what has become of it.
		awaitWriters(t, address)
		return open(t, address)
	})
}

// awaitWriters waits until no other connection is in a transaction.
func awaitWriters(t *testing.T, address string) {
	t.Helper()
	pgtest.Exec(t, address, `DO $$ BEGIN
		WHILE EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle') LOOP
			PERFORM pg_sleep(0.005), pg_stat_clear_snapshot();
		END LOOP;
	END $$`)
}
