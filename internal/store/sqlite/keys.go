package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/rouse-dev/rouse/internal/store/group"
)

// An occurrenceKey is an app's own id of an occurrence of an event.
type occurrenceKey struct{ app, event, key string }

// keys spare the writer a question about the key of each occurrence that is to be appended: hardly any is taken, so it is
// assumed to be free. If it is not, the index refuses the occurrence when it is written, and the transaction is run again with
// care.
type keys struct {
	appended map[occurrenceKey]struct{} // by the transaction that runs
	careful  bool                       // nothing is assumed
}

func newKeys() *keys { return &keys{appended: map[occurrenceKey]struct{}{}} }

// free reports whether the key may be taken for free; if not, the database has to be asked.
func (k *keys) free(key occurrenceKey) bool { return !k.careful && !k.holds(key) }

// holds reports whether the transaction that runs has appended an occurrence with that key, which it may not have written yet.
func (k *keys) holds(key occurrenceKey) bool {
	_, ok := k.appended[key]
	return ok
}

// refused notes that the database refused what was assumed, if that is what the error says, which then wraps
// [group.ErrAgain].
func (k *keys) refused(err error) error {
	var e *sqlite.Error
	if k.careful || !errors.As(err, &e) || e.Code() != sqlitelib.SQLITE_CONSTRAINT_UNIQUE {
		return err
	}
	k.careful = true
	return fmt.Errorf("%w: %w", group.ErrAgain, err)
}

// kept is told that the transaction was kept.
func (k *keys) kept() { k.careful = false }
