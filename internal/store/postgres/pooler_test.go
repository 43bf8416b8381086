package postgres_test

import (
	"testing"
	"time"

	database "github.com/rouse-dev/rouse/internal/postgres"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
)

// Behind a pooler that lends connections for one transaction at a time nothing is different.
func TestPooler(t *testing.T) {
	t.Parallel()
	direct := pgtest.Database(t)
	pooled := pgtest.Pooled(t, direct)
	for address, want := range map[string]bool{direct: false, pooled: true, pooled + "&pgbouncer=true": true, direct + "&pgbouncer=true": true} {
		d, err := database.Open(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		if d.Pooled() != want {
			t.Errorf("%s: pooled %t, want %t", address, d.Pooled(), want)
		}
	}
	t.Run("in order", func(t *testing.T) { follow(t, pooled) })
	other := pgtest.Database(t)
	t.Run("changes", func(t *testing.T) { seeChanges(t, pgtest.Pooled(t, other)) })
	t.Run("used-up ids", func(t *testing.T) {
		s := open(t, pooled)
		for i, want := range []bool{true, false} {
			if fresh, err := s.Spend(t.Context(), "scope", "id", time.Now().Add(time.Hour)); err != nil || fresh != want {
				t.Errorf("fresh %d: %t, %v", i, fresh, err)
			}
		}
	})
}
