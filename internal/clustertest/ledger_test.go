package clustertest

import (
	"fmt"
	"maps"
	"sync"
)

// A ledger is what one receiver was given of numbers that were emitted one after the other for each job, and whether that is
// as promised: each at least once, in order when it comes first, and with the same id when it comes again.
type ledger struct {
	name     string
	inOrder  bool // it is promised that they come in order
	changed  chan struct{}
	problems chan<- string

	mu   sync.Mutex
	last map[string]int    // by job: the last that came first
	ids  map[string]string // by job and number
}

func newLedger(name string, inOrder bool, problems chan<- string) *ledger {
	return &ledger{name: name, inOrder: inOrder, changed: make(chan struct{}, 1), problems: problems,
		last: map[string]int{}, ids: map[string]string{}}
}

// problem notes what is not as promised. The first ones are enough.
func (l *ledger) problem(format string, args ...any) {
	select {
	case l.problems <- l.name + ": " + fmt.Sprintf(format, args...):
	default:
	}
}

// take takes a delivery.
func (l *ledger) take(job string, n int, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := fmt.Sprintf("%s %d", job, n)
	if before, again := l.ids[key]; again && before != id {
		l.problem("%s came as %s and again as %s", key, before, id)
	} else if !again && l.inOrder && n != l.last[job]+1 {
		l.problem("%s came after %d", key, l.last[job])
	} else if !again {
		l.last[job]++
	}
	l.ids[key] = id
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// missing is how many of each job have not come.
func (l *ledger) missing(emitted map[string]int) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	missing := maps.Clone(emitted)
	for job, n := range l.last {
		if missing[job] -= n; missing[job] == 0 {
			delete(missing, job)
		}
	}
	return missing
}
