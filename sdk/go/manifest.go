package wakeshift

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// A manifest holds the events the app has defined and keeps the core's copy of
// them up to date. The core is told before the first call that needs it, and
// again after another event was defined.
type manifest struct {
	core    *coreClient
	changed func() // called after another event was defined

	// put is used by the one PUT that runs at a time. It outlives the caller who
	// started it, since others wait for it too.
	put  context.Context
	stop context.CancelFunc

	mu        sync.Mutex
	events    []*event // in the order of their definition
	names     map[string]*event
	published int         // how many of events the core has
	running   *publishing // nil when no PUT runs
	puts      sync.WaitGroup
	closed    bool
}

// A publishing is one PUT of the manifest, shared by all who wait for it.
type publishing struct {
	done chan struct{}
	err  error // set before done is closed
}

func newManifest(core *coreClient, changed func()) *manifest {
	ctx, stop := context.WithCancel(context.Background())
	return &manifest{core: core, changed: changed, put: ctx, stop: stop, names: map[string]*event{}}
}

// add adds a defined event; its name must be new.
func (m *manifest) add(e *event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[e.name] != nil {
		return fmt.Errorf("wakeshift: event %s is defined twice", e.name)
	}
	m.names[e.name] = e
	m.events = append(m.events, e)
	m.changed()
	return nil
}

// event returns a defined event by name, or nil.
func (m *manifest) event(name string) *event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.names[name]
}

// sorted returns all defined events by name.
func (m *manifest) sorted() []*event {
	m.mu.Lock()
	events := slices.Clone(m.events)
	m.mu.Unlock()
	slices.SortFunc(events, func(a, b *event) int { return strings.Compare(a.name, b.name) })
	return events
}

// publish returns once the core has every event that was defined before the
// call. Callers at the same time share one PUT and its error; the next caller
// after an error tries again. With no event defined nothing is put: that would
// remove those another process of the app has defined.
func (m *manifest) publish(ctx context.Context) error {
	m.mu.Lock()
	wanted := len(m.events)
	m.mu.Unlock()
	for {
		running, err := m.behind(wanted)
		if running == nil || err != nil {
			return err
		}
		select {
		case <-running.done:
			if running.err != nil {
				return running.err
			}
		case <-ctx.Done():
			return &Error{Code: CodeUnreachable, cause: ctx.Err(), Message: "publishing the manifest: " + ctx.Err().Error()}
		}
	}
}

// forgotten says that the core does not have what was published.
func (m *manifest) forgotten() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.published = 0
}

// behind returns the PUT to wait for while the core lacks some of the wanted
// events, starting one if none runs, and nil once it has them.
func (m *manifest) behind(wanted int) (*publishing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return nil, ErrClosed
	case m.published >= wanted:
		return nil, nil
	case m.running == nil:
		p := &publishing{done: make(chan struct{})}
		m.running = p
		events := slices.Clone(m.events)
		m.puts.Go(func() { m.run(p, events) })
	}
	return m.running, nil
}

func (m *manifest) run(p *publishing, events []*event) {
	entries := make([]manifestEntry, len(events))
	for i, e := range events {
		entries[i] = e.entry()
	}
	var kept struct{}
	p.err = m.core.call(m.put, coreRequest{
		method:     http.MethodPut,
		path:       "/manifest",
		body:       map[string]any{"events": entries},
		repeatable: true,
	}, &kept)
	m.mu.Lock()
	if p.err == nil {
		m.published = len(events)
	}
	m.running = nil
	m.mu.Unlock()
	close(p.done)
}

// close ends a running PUT.
func (m *manifest) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.stop()
	m.puts.Wait()
}
