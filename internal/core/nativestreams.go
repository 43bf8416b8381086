package core

import (
	"container/list"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

const (
	// beatEvery is how often a native stream says that it is alive, and how far it has looked. Clients expect it within 30 s.
	beatEvery = 25 * time.Second
	// maxNativeStreams is how many native streams one connection of an app carries.
	maxNativeStreams = 10_000
	// maxStreamArguments bounds what a stream keeps of its event's arguments, in bytes.
	maxStreamArguments = 16 << 10
)

// A NoticeKind says what a native stream's client is told.
type NoticeKind int

const (
	NoticeActive     NoticeKind = iota // the stream begins, or goes on after a gap
	NoticeEvent                        // something happened
	NoticeHeartbeat                    // the stream is alive
	NoticeError                        // the core has trouble; the stream goes on
	NoticeTerminated                   // the stream ends, and why
	NoticeEnd                          // it has ended: nothing follows
)

// A NativeNotice is one thing that the client of a native stream is told.
type NativeNotice struct {
	Stream    int64
	Kind      NoticeKind
	Cursor    string          // of NoticeActive and NoticeHeartbeat: everything up to there was looked at
	Truncated bool            // of NoticeActive: something before the cursor was passed over
	Event     json.RawMessage // of NoticeEvent: an [OccurrenceWire]; it is shared and is not changed
	Err       error           // of NoticeTerminated: a refusal
}

// NativeStreams are the native streams that one connection of an app carries. Nothing is read before it is asked for: a
// connection that does not get on costs no memory. Next belongs to one goroutine, the other methods are safe for concurrent use.
type NativeStreams struct {
	core *Core
	app  wake.App
	wake chan struct{} // there may be something for Next

	// changing is held while topics are watched or let go. It is taken before mu: a watch is made and closed without mu, which
	// those take who hint.
	changing            sync.Mutex
	manifest, forgotten *bus.Watch

	mu       sync.Mutex
	closed   bool
	streams  map[int64]*nativeStream
	topics   map[string]*nativeTopic
	hinted   []*nativeTopic
	replaced bool      // the app's manifest may be another
	forgot   bool      // a user of the app may have been forgotten
	knows    wake.Seq  // the streams of those forgotten up to here were ended
	asked    time.Time // when that was found out last
	ready    list.List // of *nativeStream: those with something to read, perhaps
	urgent   list.List // of *nativeStream: those with something to tell that needs no reading
	beats    list.List // of *nativeStream, by when they are to beat

	// These belong to whoever calls Next.

	pending  []NativeNotice // of one stream, in order
	of       *nativeStream
	pages    map[string]*nativePage // by topic, read last
	reading  time.Time              // not before: the store failed
	patience time.Duration          // how long reading waits for the store, the next time it fails
}

// A nativeTopic is a topic that streams of one connection read.
type nativeTopic struct {
	name    string
	watch   *bus.Watch
	hinted  bool // it is in NativeStreams.hinted
	streams map[*nativeStream]struct{}
}

// A nativeStream is one client's events/stream. It is small: there may be very many.
type nativeStream struct {
	id        int64
	native    Native // to be admitted again
	principal string
	topic     string
	opened    wake.Seq // where the log ended then

	// Guarded by NativeStreams.mu.

	queue  *list.List // where it waits; nil: nowhere
	place  *list.Element
	beat   *list.Element
	beatAt time.Time
	due    bool // it is to beat
	gone   bool // its client went away
	ended  *refusal.Refusal
	again  bool // it is to be admitted again

	// These belong to whoever calls Next.

	event     *wake.Event
	version   int64 // of the manifest
	voucher   bool
	wants     wake.Subscription
	cursor    wake.Seq
	truncated bool
	active    bool // its client was told that it is
	troubled  bool // its client was told of trouble
}

// manifestTopic is hinted at when an app's manifest was replaced.
const manifestTopic = wake.ReservedTopicPrefix + "manifest"

// NativeStreams makes room for the native streams of one connection of an app. The caller closes it. An app that has too many
// connections is refused.
func (c *Core) NativeStreams(app wake.App) (*NativeStreams, error) {
	s := &NativeStreams{core: c, app: app, wake: make(chan struct{}, 1), streams: map[int64]*nativeStream{}, topics: map[string]*nativeTopic{}}
	if err := c.streaming.connect(app.ID); err != nil {
		return nil, err
	}
	s.manifest = c.bus.Notify(s.manifestReplaced, bus.Key{App: app.ID, Topic: manifestTopic})
	s.forgotten = c.bus.Notify(s.userForgotten, bus.Key{App: app.ID, Topic: forgottenTopic})
	return s, nil
}

// Close ends all of them, without telling anybody.
func (s *NativeStreams) Close() {
	s.manifest.Close()
	s.forgotten.Close()
	s.changing.Lock() // who is adding one has done so
	s.mu.Lock()
	s.changing.Unlock()
	if !s.closed {
		s.core.streaming.disconnect(s.app.ID)
	}
	s.closed = true
	all := make([]*nativeStream, 0, len(s.streams))
	for _, st := range s.streams {
		all = append(all, st)
	}
	s.mu.Unlock()
	for _, st := range all {
		s.remove(st, true)
	}
}

// Len is how many there are.
func (s *NativeStreams) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams)
}

// Has reports whether there is a stream of that number.
func (s *NativeStreams) Has(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[id] != nil
}

// Open begins a stream under a number that is not in use. Errors are those of [Core.Poll], and there is no stream then.
func (s *NativeStreams) Open(ctx context.Context, id int64, n Native, since Since) error {
	c := s.core
	if err := c.checkCall(s.app, n.Call); err != nil {
		return err
	}
	if len(n.Arguments) > maxStreamArguments {
		return refusal.New(refusal.BadArguments, "arguments: at most %d bytes for a stream", maxStreamArguments)
	}
	n.Call = wake.Call{User: n.Call.User} // of the rest, nothing is needed any more
	st := &nativeStream{id: id, native: n}
	err := c.withManifest(ctx, s.app.ID, func(m manifest) error {
		a, err := c.admit(ctx, s.app, m, n)
		if err != nil {
			return err
		}
		if err := a.offers(wake.DeliveryPush); err != nil {
			return err
		}
		st.admitted(s.app, m, a)
		return c.store.View(ctx, func(r store.Reader) error {
			if err := m.current(r, s.app.ID); err != nil {
				return err
			}
			b, err := c.begin(r, st.wants, since)
			st.cursor, st.truncated, st.opened = b.after, b.truncated, b.head
			return err
		})
	})
	if err != nil {
		return err
	}
	return s.add(st)
}

// admitted takes what a stream's client was admitted to.
func (st *nativeStream) admitted(app wake.App, m manifest, a access) {
	st.event, st.version, st.voucher, st.wants = a.event, m.version, a.voucher != "", a.wants(app, st.native.Call.User)
	st.topic, st.principal = a.arguments.Topic, a.principal
}

// add takes in a stream. Whoever looks afterwards misses nothing that was hinted at before.
func (s *NativeStreams) add(st *nativeStream) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	closed, taken, full, topic := s.closed, s.streams[st.id] != nil, len(s.streams) >= maxNativeStreams, s.topics[st.topic]
	s.mu.Unlock()
	switch {
	case closed:
		return refusal.New(refusal.Unavailable, "the connection is being closed")
	case taken:
		return refusal.New(refusal.BadRequest, "stream: %d is open already", st.id)
	case full:
		return tooManyStreams(maxNativeStreams, "on this connection")
	}
	if err := s.core.streaming.take(s.app.ID, st.principal, s.core.limits.Limits); err != nil {
		return err
	}
	if topic == nil {
		topic = &nativeTopic{name: st.topic, streams: map[*nativeStream]struct{}{}}
		topic.watch = s.core.bus.Notify(func() { s.hint(topic) }, bus.Key{App: s.app.ID, Topic: st.topic})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) == 0 || st.opened < s.knows {
		// Its user may have been forgotten while it was being opened.
		s.knows, s.forgot = st.opened, true
	}
	s.topics[st.topic], s.streams[st.id] = topic, st
	topic.streams[st] = struct{}{}
	st.beatAt = time.Now().Add(beatEvery)
	st.beat = s.beats.PushBack(st)
	s.enqueue(st, &s.urgent)
	return nil
}

// CloseStream forgets a stream whose client went away. One that is not there is none.
func (s *NativeStreams) CloseStream(id int64) {
	s.mu.Lock()
	st := s.streams[id]
	s.mu.Unlock()
	if st != nil {
		s.remove(st, true)
	}
}

// Refuse ends a stream that the app's own authorization does not allow any more. Its client is told.
func (s *NativeStreams) Refuse(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.streams[id]; st != nil {
		s.end(st, refused(st.native.Name))
	}
}

// end has a stream's client told that it ends. s.mu is held.
func (s *NativeStreams) end(st *nativeStream, why *refusal.Refusal) {
	if st.ended == nil {
		st.ended = why
	}
	s.enqueue(st, &s.urgent)
}

// remove takes a stream out. gone says that its client went away: it is told nothing more.
func (s *NativeStreams) remove(st *nativeStream, gone bool) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	st.gone = st.gone || gone
	if s.streams[st.id] != st {
		s.mu.Unlock()
		return
	}
	delete(s.streams, st.id)
	s.dequeue(st)
	s.beats.Remove(st.beat)
	topic := s.topics[st.topic]
	delete(topic.streams, st)
	empty := len(topic.streams) == 0
	if empty {
		delete(s.topics, st.topic)
	}
	s.mu.Unlock()
	if empty {
		topic.watch.Close()
	}
	s.core.streaming.release(s.app.ID, st.principal)
}

// enqueue has Next look at a stream. s.mu is held.
func (s *NativeStreams) enqueue(st *nativeStream, queue *list.List) {
	if st.queue == queue || st.queue == &s.urgent {
		return
	}
	s.dequeue(st)
	st.queue, st.place = queue, queue.PushBack(st)
	s.signal()
}

func (s *NativeStreams) dequeue(st *nativeStream) {
	if st.queue != nil {
		st.queue.Remove(st.place)
		st.queue, st.place = nil, nil
	}
}

func (s *NativeStreams) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// hint notes that a topic may have something new. The bus calls it.
func (s *NativeStreams) hint(topic *nativeTopic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !topic.hinted {
		topic.hinted = true
		s.hinted = append(s.hinted, topic)
	}
	s.signal()
}

// manifestReplaced notes that the app's manifest may be another. The bus calls it.
func (s *NativeStreams) manifestReplaced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replaced = true
	s.signal()
}
