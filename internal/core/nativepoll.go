package core

import (
	"context"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A Poll is what an events/poll asks beside its event.
type Poll struct {
	Cursor    *string       // nil: from now on
	MaxEvents int           // 0: the default
	MaxAge    time.Duration // 0: no bound
}

// A Since is where a native client wants to begin.
type Since struct {
	Cursor *string       // nil: from now on
	MaxAge time.Duration // 0: no bound
}

// A Polled is the answer to events/poll.
type Polled struct {
	Events     []OccurrenceWire `json:"events"`
	Cursor     string           `json:"cursor"`
	Truncated  bool             `json:"truncated"`
	HasMore    bool             `json:"hasMore"`
	NextPollMs int              `json:"nextPollMs"`
}

const (
	// defaultPoll and maxPoll are how many occurrences a poll brings.
	defaultPoll = 100
	maxPoll     = 10_000
	// maxPollBytes is about how much of arguments, texts and payloads it brings: what is over waits for the next poll.
	maxPollBytes = 4 << 20
	// Of one snapshot so many are read: at first few, since each may be as large as a payload can be.
	firstPollStep = 32
	mostPollStep  = 1000
	// maxPollSteps bounds the snapshots of one poll: a filter may pass over a million occurrences.
	maxPollSteps = 32
	// nextPoll is how long a client should wait before the next poll.
	nextPoll = 5 * time.Second
)

// Poll answers an events/poll: what happened after the cursor. A cursor that means nothing here, or lies before what is kept, is
// no error: the answer says truncated.
func (c *Core) Poll(ctx context.Context, app wake.App, n Native, p Poll) (Polled, error) {
	if err := c.checkCall(app, n.Call); err != nil {
		return Polled{}, err
	}
	poll := polling{core: c, limit: defaultPoll}
	if p.MaxEvents > 0 {
		poll.limit = min(p.MaxEvents, maxPoll)
	}
	err := c.withManifest(ctx, app.ID, func(m manifest) error {
		a, err := c.admit(ctx, app, m, n)
		if err != nil {
			return err
		}
		if err := a.offers(wake.DeliveryPoll); err != nil {
			return err
		}
		poll.wants = a.wants(app, n.Call.User)
		return c.store.View(ctx, func(r store.Reader) (err error) {
			if err := m.current(r, app.ID); err != nil {
				return err
			}
			poll.begin, err = c.begin(r, poll.wants, Since{p.Cursor, p.MaxAge})
			return err
		})
	})
	if err != nil {
		return Polled{}, err
	}
	if err := poll.run(ctx); err != nil {
		return Polled{}, fault(err)
	}
	return Polled{Events: poll.events, Cursor: c.cursor(poll.after), Truncated: poll.truncated, HasMore: poll.after < poll.head,
		NextPollMs: int(nextPoll.Milliseconds())}, nil
}

// A beginning is where a native client begins to read.
type beginning struct {
	after, head wake.Seq
	truncated   bool // it wanted to begin earlier
}

// begin finds where to begin. maxAge counts as truncated when it passes over something that is wanted.
func (c *Core) begin(r store.Reader, wants wake.Subscription, since Since) (b beginning, err error) {
	log, err := r.Log()
	if err != nil {
		return b, err
	}
	b = beginning{after: log.Head, head: log.Head}
	if since.Cursor == nil {
		return b, nil
	}
	after, ok := c.parseCursor(*since.Cursor)
	if !ok || after > log.Head {
		b.truncated = true
		return b, nil
	}
	if b.after = after; after < log.Horizon {
		b.after, b.truncated = log.Horizon, true
	}
	if since.MaxAge <= 0 {
		return b, nil
	}
	young, err := r.PlaceBefore(now().Add(-since.MaxAge))
	if err != nil || young <= b.after {
		return b, err
	}
	wants.From = b.after
	passed, err := readLog(r, wants.App, []string{wants.Topic}, stretch{b.after, young}, 1, wants.Takes)
	b.after, b.truncated = young, b.truncated || len(passed.occurrences) > 0 || passed.more
	return b, err
}

// polling is one poll under way.
type polling struct {
	core  *Core
	wants wake.Subscription
	begin beginning
	limit int

	after, head wake.Seq
	truncated   bool
	events      []OccurrenceWire
	bytes       int
}

// run reads step by step, each from a snapshot of its own, until there is enough or all was read that was there at the beginning.
func (p *polling) run(ctx context.Context) error {
	p.after, p.head, p.truncated, p.events = p.begin.after, p.begin.head, p.begin.truncated, []OccurrenceWire{}
	size := firstPollStep
	for step := 0; step < maxPollSteps && p.after < p.head && len(p.events) < p.limit && p.bytes < maxPollBytes; step++ {
		size = min(size, p.limit-len(p.events))
		var page owed
		err := p.core.store.View(ctx, func(r store.Reader) error {
			log, err := r.Log()
			if err != nil {
				return err
			}
			if p.after < log.Horizon { // retention was faster
				p.after, p.truncated = log.Horizon, true
			}
			p.wants.From = p.after
			page, err = readLog(r, p.wants.App, []string{p.wants.Topic}, stretch{p.after, p.head}, size, p.wants.Takes)
			return err
		})
		if err != nil {
			return err
		}
		p.take(page)
		size = p.nextSize(size)
	}
	return nil
}

// take takes what a page has, as far as there is room. One occurrence has room always.
func (p *polling) take(page owed) {
	for _, o := range page.occurrences {
		size := len(o.Text) + len(o.Data)
		if p.bytes+size > maxPollBytes && len(p.events) > 0 {
			p.bytes = maxPollBytes
			return
		}
		p.bytes += size
		p.events = append(p.events, p.core.onWire(o))
		p.after = o.Seq
	}
	p.after = max(p.after, page.through)
}

// nextSize is how many to read at once next: as many as may fit, going by those so far, and not suddenly many.
func (p *polling) nextSize(size int) int {
	size = min(4*size, mostPollStep)
	if n := len(p.events); n > 0 {
		size = min(size, max((maxPollBytes-p.bytes)/(p.bytes/n+1), firstPollStep))
	}
	return size
}
