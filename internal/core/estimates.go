package core

import (
	"sync"
	"time"
)

// maxEstimates is how many estimates are kept. Without one, the rows are counted.
const maxEstimates = 20_000

// estimates know about how many rows somebody has, so that not each new one counts all before it. An estimate is what was
// counted within the last [tallyTime] and what was added since; what ended since still counts, so that it is counted anew before
// anybody is refused. Other nodes add without this one's knowledge for as long. Safe for concurrent use.
type estimates struct {
	mu sync.Mutex
	of map[string]estimate
}

type estimate struct {
	rows int
	at   time.Time
}

// below reports whether somebody has less than limit, and else how many, by the estimate or by counting.
func (e *estimates) below(limit int, who string, count func() (int, error)) (has int, ok bool, err error) {
	e.mu.Lock()
	known := e.of[who]
	e.mu.Unlock()
	if known.rows < limit && time.Since(known.at) < tallyTime {
		return known.rows, true, nil
	}
	if has, err = count(); err != nil {
		return 0, false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of == nil || len(e.of) >= maxEstimates {
		e.of = map[string]estimate{}
	}
	e.of[who] = estimate{has, time.Now()}
	return has, has < limit, nil
}

// add notes one more row of each.
func (e *estimates) add(who ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range who {
		if known, ok := e.of[one]; ok {
			known.rows++
			e.of[one] = known
		}
	}
}
