package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rouse-dev/rouse/internal/store/group"
	"github.com/rouse-dev/rouse/internal/store/postgres/internal/queries"
)

// An occurrenceKey is an app's own id of an occurrence of an event.
type occurrenceKey struct{ app, event, key string }

// keys tell of the keys of occurrences that are to be appended whether they are taken, without asking the database about each:
// hardly any is. What is not known is assumed to be free. If it is not, the database refuses the occurrence when it is
// written, and the transaction is run again, knowing better.
type keys struct {
	appended map[occurrenceKey]bool // by the transaction that runs
	taken    map[occurrenceKey]bool // what was looked up
	suspects []occurrenceKey        // to be looked up when the transaction is run again
	failures int                    // how often it failed for a wrong assumption
	careful  bool                   // nothing is assumed
}

// maxFailures is how often a transaction is run on assumptions.
const maxFailures = 2

func newKeys() *keys {
	return &keys{appended: map[occurrenceKey]bool{}, taken: map[occurrenceKey]bool{}}
}

// free reports whether the key may be taken for free; if not, the database has to be asked.
func (k *keys) free(key occurrenceKey) bool { return !k.careful && !k.taken[key] && !k.appended[key] }

// distrust is called when occurrences are removed: their keys become free within the transaction.
func (k *keys) distrust() { k.careful = true }

// begin looks up, under the lock, what an earlier run of the transaction has assumed.
func (k *keys) begin(q *queries.Queries) error {
	clear(k.appended)
	k.careful = k.failures >= maxFailures
	if len(k.suspects) == 0 || k.careful {
		return nil
	}
	var p queries.KeysTakenParams
	for _, key := range k.suspects {
		p.Apps, p.Events, p.OwnKeys = append(p.Apps, key.app), append(p.Events, key.event), append(p.OwnKeys, key.key)
	}
	rows, err := q.KeysTaken(background, p)
	for _, row := range rows {
		k.taken[occurrenceKey{row.App, row.Event, row.OwnKey.String}] = true
	}
	return err
}

// refused notes that the database refused what was assumed, if that is what the error says, which then wraps
// [group.ErrAgain].
func (k *keys) refused(err error) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != "23505" || e.ConstraintName != "occurrences_of_key" {
		return err
	}
	k.failures++
	for key := range k.appended {
		k.suspects = append(k.suspects, key)
	}
	return fmt.Errorf("%w: %w", group.ErrAgain, err)
}

// reset forgets everything once the transaction is kept.
func (k *keys) reset() {
	clear(k.appended)
	clear(k.taken)
	k.suspects, k.failures, k.careful = nil, 0, false
}
