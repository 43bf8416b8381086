package postgres_test

import (
	"testing"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/store/postgres/pgtest"
	"github.com/rouse-dev/rouse/internal/store/storetest"
)

func TestSharing(t *testing.T) {
	t.Parallel()
	storetest.RunShared(t, func(t *testing.T) store.Shared { return open(t, pgtest.Database(t)) })
}
