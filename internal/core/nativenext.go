package core

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

const (
	// streamPage is how many occurrences are read for a stream at once; then it is another's turn.
	streamPage = 32
	// pageTime is how long streams of one topic share a page.
	pageTime = time.Second
	// readTime bounds the wait for the store: heartbeats wait as long.
	readTime = 4 * time.Second
	// minPatience and maxPatience bound how long nothing is read after the store has failed.
	minPatience = time.Second
	maxPatience = 15 * time.Second
)

// A nativePage is what one read found on a topic. Streams that have come as far share it.
type nativePage struct {
	version     int64    // of the manifest
	after       wake.Seq // where it begins
	through     wake.Seq // everything up to here was looked at
	more        bool     // there may be more after it
	bytes       int
	occurrences []nativeOccurrence
	at          time.Time
}

// A nativeOccurrence is one that is encoded once, for however many streams.
type nativeOccurrence struct {
	wake.Occurrence
	wire json.RawMessage // nil: not yet
}

// Next gives the next thing to tell, and waits until there is one. It reads no further than what it gives.
func (s *NativeStreams) Next(ctx context.Context) (NativeNotice, error) {
	var timer *time.Timer
	for {
		if err := ctx.Err(); err != nil {
			return NativeNotice{}, err
		}
		if notice, ok := s.pop(); ok {
			return notice, nil
		}
		s.endForgotten(ctx)
		st, wait := s.pick(time.Now())
		if st != nil {
			s.of, s.pending = st, s.look(ctx, st)
			continue
		}
		s.pages = nil // what is not needed now is read again
		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// pop gives the next of what is to be told already.
func (s *NativeStreams) pop() (NativeNotice, bool) {
	if len(s.pending) == 0 {
		return NativeNotice{}, false
	}
	s.mu.Lock()
	gone := s.of.gone
	s.mu.Unlock()
	if gone {
		s.pending, s.of = nil, nil
		return NativeNotice{}, false
	}
	notice := s.pending[0]
	s.pending = s.pending[1:]
	return notice, true
}

// pick gives the stream to look at next, or how long there is none unless something is hinted at.
func (s *NativeStreams) pick(at time.Time) (*nativeStream, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeHinted()
	failing := at.Before(s.reading)
	s.wakeBeating(at, failing)
	queue := &s.urgent
	if queue.Len() == 0 && !failing {
		queue = &s.ready
	}
	if first := queue.Front(); first != nil {
		st := first.Value.(*nativeStream)
		s.dequeue(st)
		return st, 0
	}
	wait := time.Hour
	if first := s.beats.Front(); first != nil {
		wait = first.Value.(*nativeStream).beatAt.Sub(at)
	}
	if failing {
		wait = min(wait, s.reading.Sub(at))
	}
	return nil, wait
}

// wakeHinted has those looked at that were hinted at. s.mu is held.
func (s *NativeStreams) wakeHinted() {
	for _, topic := range s.hinted {
		topic.hinted = false
		delete(s.pages, topic.name)
		for st := range topic.streams {
			s.enqueue(st, &s.ready)
		}
	}
	s.hinted = nil
	if !s.replaced {
		return
	}
	s.replaced = false
	for _, st := range s.streams {
		st.again = true
		s.enqueue(st, &s.ready)
	}
}

// wakeBeating has those looked at that are to beat: they also find what no hint told of. s.mu is held.
func (s *NativeStreams) wakeBeating(at time.Time, failing bool) {
	for first := s.beats.Front(); first != nil; first = s.beats.Front() {
		st := first.Value.(*nativeStream)
		if st.beatAt.After(at) {
			return
		}
		st.due, st.beatAt = true, at.Add(beatEvery)
		s.beats.MoveToBack(first)
		if failing {
			s.enqueue(st, &s.urgent)
		} else {
			s.enqueue(st, &s.ready)
		}
	}
}

// look finds out what a stream's client is to be told.
func (s *NativeStreams) look(ctx context.Context, st *nativeStream) (notices []NativeNotice) {
	s.mu.Lock()
	ended, due, again, failing := st.ended, st.due, st.again, time.Now().Before(s.reading)
	st.due = false
	s.mu.Unlock()
	first := !st.active
	if first {
		// Its client hears first that it is, and only then whatever there may be.
		st.active = true
		notices = append(notices, st.notice(NoticeActive, s.core))
		notices[0].Truncated = st.truncated
	}
	if ended != nil {
		return append(notices, s.terminate(st, ended)...)
	}
	if first {
		s.later(st, due)
		return notices
	}
	var err error
	if !failing {
		notices, err = s.read(ctx, st, again, due)
		if no := refusal.Of(err); no != nil && no.Code != refusal.Unavailable {
			return s.terminate(st, no)
		}
		failing = err != nil
		s.learn(ctx, err)
	}
	if failing {
		s.later(st, false)
		if !st.troubled && ctx.Err() == nil {
			st.troubled = true
			notices = append(notices, NativeNotice{Stream: st.id, Kind: NoticeError})
		}
	}
	if due {
		notices = append(notices, st.notice(NoticeHeartbeat, s.core))
	}
	return notices
}

// notice is one with the stream's cursor.
func (st *nativeStream) notice(kind NoticeKind, c *Core) NativeNotice {
	return NativeNotice{Stream: st.id, Kind: kind, Cursor: c.cursor(st.cursor)}
}

// later has a stream looked at again, after others.
func (s *NativeStreams) later(st *nativeStream, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[st.id] == st {
		st.due = st.due || due
		s.enqueue(st, &s.ready)
	}
}

// terminate takes a stream out and tells its client why.
func (s *NativeStreams) terminate(st *nativeStream, why *refusal.Refusal) []NativeNotice {
	s.remove(st, false)
	return []NativeNotice{{Stream: st.id, Kind: NoticeTerminated, Err: why}, {Stream: st.id, Kind: NoticeEnd}}
}

// learn takes note of how reading went. While the store fails it is not asked for a while, whoever wants to read: one call that
// waits for it in vain holds up all.
func (s *NativeStreams) learn(ctx context.Context, err error) {
	if err == nil {
		s.patience = 0
		return
	}
	if ctx.Err() != nil {
		return
	}
	if s.patience == 0 {
		s.core.log.ErrorContext(ctx, "native streams cannot be read; it is tried again", "app", s.app.ID, "error", err)
	}
	s.patience = min(max(2*s.patience, minPatience), maxPatience)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading = time.Now().Add(s.patience)
}

// read reads a page of a stream. A refusal says that the stream is to end.
func (s *NativeStreams) read(ctx context.Context, st *nativeStream, again, due bool) (notices []NativeNotice, err error) {
	page, err := s.page(ctx, st)
	if err != nil {
		return nil, err
	}
	if again || page.version != st.version || due && st.voucher {
		if err := s.readmit(ctx, st); err != nil {
			return nil, err
		}
	}
	st.troubled = false
	if page.after > st.cursor {
		// Retention was faster.
		st.cursor = page.after
		gap := st.notice(NoticeActive, s.core)
		gap.Truncated = true
		notices = append(notices, gap)
	}
	for i := range page.occurrences {
		o := &page.occurrences[i]
		if o.Seq <= st.cursor || !st.wants.Takes(o.Occurrence) {
			continue
		}
		wire, err := s.core.encode(o)
		if err != nil {
			return nil, err
		}
		notices = append(notices, NativeNotice{Stream: st.id, Kind: NoticeEvent, Event: wire})
	}
	st.cursor = max(st.cursor, page.through)
	if page.more {
		s.later(st, false)
	}
	return notices, nil
}

// encode is an occurrence as a stream's client receives it.
func (c *Core) encode(o *nativeOccurrence) (wire json.RawMessage, err error) {
	if o.wire == nil {
		event := c.onWire(o.Occurrence)
		event.Cursor = c.cursor(o.Seq)
		o.wire, err = json.Marshal(event)
	}
	return o.wire, err
}

// page is what follows a stream's cursor on its topic: a page that another stream has read a moment ago, if that holds it.
func (s *NativeStreams) page(ctx context.Context, st *nativeStream) (*nativePage, error) {
	if page := s.pages[st.topic]; page != nil && page.after <= st.cursor && time.Since(page.at) < pageTime {
		return page, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	page := &nativePage{at: time.Now()}
	err := s.core.store.View(ctx, func(r store.Reader) (err error) {
		if page.version, err = r.ManifestVersion(s.app.ID); err != nil {
			return err
		}
		log, err := r.Log()
		if err != nil {
			return err
		}
		page.after = max(st.cursor, log.Horizon)
		found, err := readLog(r, s.app.ID, []string{st.topic}, stretch{page.after, log.Head}, streamPage, func(o wake.Occurrence) bool {
			return o.Kind == wake.KindEvent
		})
		page.through, page.more = found.through, found.more
		page.occurrences = make([]nativeOccurrence, len(found.occurrences))
		for i, o := range found.occurrences {
			page.occurrences[i].Occurrence = o
			page.bytes += len(o.Text) + len(o.Data)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if !page.more && page.bytes <= maxPageBytes {
		if s.pages == nil || len(s.pages) >= maxPages {
			s.pages = map[string]*nativePage{}
		}
		s.pages[st.topic] = page
	}
	return page, nil
}

// What is shared at a time: so many pages, each of at most so many bytes of texts and payloads.
const (
	maxPages     = 16
	maxPageBytes = 1 << 20
)

// readmit asks again whether a stream's client may have its event. A refusal says why the stream cannot go on.
func (s *NativeStreams) readmit(ctx context.Context, st *nativeStream) error {
	c := s.core
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	s.mu.Lock()
	st.again = false
	s.mu.Unlock()
	err := c.withManifest(ctx, s.app.ID, func(m manifest) error {
		if err := c.store.View(ctx, func(r store.Reader) error { return m.current(r, s.app.ID) }); err != nil {
			return err
		}
		if is := m.events[st.native.Name]; is != nil {
			if schema := brokenSchema(st.event, is); schema != "" {
				return schemaChanged(is.Name, schema)
			}
		}
		a, err := c.admit(ctx, s.app, m, st.native)
		if err != nil {
			return err
		}
		if err := a.offers(wake.DeliveryPush); err != nil {
			return err
		}
		st.event, st.version, st.wants = a.event, m.version, a.wants(s.app, st.native.Call.User)
		return nil
	})
	if refusal.Is(err, refusal.BadArguments) {
		return schemaChanged(st.native.Name, "inputSchema") // they were good
	}
	if err != nil && refusal.Of(err) == nil || refusal.Is(err, refusal.Unavailable) {
		s.mu.Lock()
		defer s.mu.Unlock()
		st.again = true
	}
	return err
}

// brokenSchema is which schema has who has an event as it was not go on with it as it is; empty when neither does.
func brokenSchema(was, is *wake.Event) string {
	switch {
	case was.Breaks(is) == "":
		return ""
	case was.BreaksPayload(is):
		return "payloadSchema"
	}
	return "inputSchema"
}

func schemaChanged(event, feature string) *refusal.Refusal {
	return refusal.New(refusal.Unsupported, "%s has changed: list the events again", event).With("feature", feature).With("reason", "schema_changed")
}
