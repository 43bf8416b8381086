package group

import (
	"errors"
	"slices"
	"sync"

	"github.com/rouse-dev/rouse/internal/store"
)

var errOnPurpose = errors.New("on purpose")

// uncommittable is a word with which a transaction cannot be committed.
const uncommittable = "uncommittable"

// errPanic is what errors.Is takes for any panic's.
var errPanic = &panicError{}

func (p *panicError) Is(target error) bool { return target == errPanic }

// A ledger is a Database of words in memory. Parts write words; a transaction keeps all of them or none.
type ledger struct {
	mu    sync.Mutex
	kept  []string // by commits
	fresh []string // by the transaction that runs
	log   []string // what was called, and with what end

	broken error
	// What these give back is what the methods of these names do, if they are not nil.
	begin, commit func() error
	chores        func(last bool) (bool, error)
}

func (l *ledger) note(what string, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		what += ": " + err.Error()
	}
	l.log = append(l.log, what)
	return err
}

func call(f func() error) error {
	if f == nil {
		return nil
	}
	return f()
}

func (l *ledger) Begin() error { return l.note("begin", call(l.begin)) }

func (l *ledger) Chores(last bool) (wrote bool, err error) {
	if l.chores == nil {
		return false, nil
	}
	wrote, err = l.chores(last)
	return wrote, l.note("chores", err)
}

func (l *ledger) Part() Part { return &entry{l: l} }

func (l *ledger) Commit() error {
	err := call(l.commit)
	if slices.Contains(l.fresh, uncommittable) {
		err = errOnPurpose
	}
	if l.note("commit", err) != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, l.fresh...)
	l.fresh, l.broken = nil, nil
	return nil
}

func (l *ledger) Rollback() {
	_ = l.note("rollback", nil)
	l.fresh, l.broken = nil, nil
}

func (l *ledger) words() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}

func (l *ledger) calls() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.log)
}

// An entry is a Part of a ledger's transaction.
type entry struct {
	store.Tx
	l     *ledger
	wrote bool
}

func (e *entry) Wrote() bool   { return e.wrote }
func (e *entry) Broken() error { return e.l.broken }

// write gives an update that writes the word, and ends with the error.
func write(word string, err error) func(store.Tx) error {
	return func(t store.Tx) error {
		e := t.(*entry)
		e.wrote = true
		e.l.fresh = append(e.l.fresh, word)
		return err
	}
}

// read gives an update that writes nothing, and ends with the error.
func read(err error) func(store.Tx) error {
	return func(store.Tx) error { return err }
}
