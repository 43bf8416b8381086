package core

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// ErrGone means that a capability names no conversation: it was never handed out, or what it stood for is no more.
var ErrGone = errors.New("there is no such conversation")

// A Message is one occurrence as a conversation receives it.
type Message struct {
	Seq   wake.Seq
	ID    string // the same each time it is delivered
	Kind  wake.Kind
	Event string
	Text  string
	Data  json.RawMessage
	At    time.Time
}

// An Inbox reads what one conversation is owed, in order, from its position on. It belongs to one goroutine.
type Inbox struct {
	core         *Core
	conversation wake.Conversation
	app          wake.App
	conn         *Connection
	watch        *bus.Watch
	topics       []string // those watched
	cursor       wake.Seq // everything up to here was read
	live         bool     // something is subscribed still
	behind       bool     // the last read stopped at its limit
}

// OpenStream opens the inbox of the conversation that a stream's capability watches. The caller closes it.
func (c *Core) OpenStream(ctx context.Context, token string) (*Inbox, error) {
	// A second command of the same conversation may run for good reason; more than a few are orphans.
	return c.openInbox(ctx, credential.Stream, token, ViaStream, 4)
}

// OpenConnector opens the inbox of the conversation that a connector's capability names, in place of any connector before.
func (c *Core) OpenConnector(ctx context.Context, token string) (*Inbox, error) {
	return c.openInbox(ctx, credential.Connector, token, ViaHooks, 1)
}

func (c *Core) openInbox(ctx context.Context, kind credential.Kind, token, via string, most int) (*Inbox, error) {
	conversation, app, err := c.conversationOf(ctx, kind, token)
	if err != nil {
		return nil, err
	}
	return &Inbox{core: c, conversation: conversation, app: app, conn: c.connect(conversation, via, most),
		watch: c.bus.Watch(), cursor: conversation.Position, live: true}, nil
}

// conversationOf opens a capability. Whatever does not hold is ErrGone.
func (c *Core) conversationOf(ctx context.Context, kind credential.Kind, token string) (conversation wake.Conversation, app wake.App, err error) {
	id, ok := c.master.Open(kind, token)
	if !ok {
		return conversation, app, ErrGone
	}
	err = c.store.View(ctx, func(r store.Reader) (err error) {
		if conversation, err = r.Conversation(id); err != nil {
			return err
		}
		app, err = r.App(conversation.App)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		err = ErrGone
	}
	return conversation, app, err
}

// Close ends the reading.
func (in *Inbox) Close() {
	in.watch.Close()
	in.conn.Close()
}

// Conversation is whose inbox it is, as it was when it was opened.
func (in *Inbox) Conversation() wake.Conversation { return in.conversation }

// App is the app the conversation is with.
func (in *Inbox) App() wake.App { return in.app }

// Superseded is closed when a newer connection takes this one's place.
func (in *Inbox) Superseded() <-chan struct{} { return in.conn.Superseded() }

// Changed receives when there may be something new to read. It may receive for nothing, and a lost hint means that it does not:
// whoever waits on it also reads from time to time.
func (in *Inbox) Changed() <-chan struct{} { return in.watch.C() }

// Finished reports, as of the last Read, that all was read and nothing is subscribed any more.
func (in *Inbox) Finished() bool { return !in.live && !in.behind }

// Read returns the next messages, at most limit, and moves on past them. It does not wait. ErrGone means that the conversation
// is no more.
func (in *Inbox) Read(ctx context.Context, limit int) ([]Message, error) {
	var page owed
	var err error
	for again := true; again && err == nil; {
		err = in.core.store.View(ctx, func(r store.Reader) error {
			subs, err := in.subscriptions(r)
			if err != nil {
				return err
			}
			// What happened on a new topic between this snapshot and the watch was not hinted at: only a later snapshot has it.
			if again = in.rewatch(topicsOf(in.conversation, subs)); again {
				return nil
			}
			page, err = readOwed(r, in.conversation, subs, in.cursor, limit)
			return err
		})
	}
	if errors.Is(err, store.ErrNotFound) {
		in.live, in.behind = false, false
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	in.cursor, in.behind = page.through, page.more
	return in.core.messages(page.occurrences), nil
}

// rewatch watches these topics and reports whether they are others than before.
func (in *Inbox) rewatch(topics []string) bool {
	if slices.Equal(topics, in.topics) {
		return false
	}
	in.topics = topics
	in.watch.Set(keysOf(in.conversation.App, topics)...)
	return true
}

// subscriptions reads what the conversation is owed by.
func (in *Inbox) subscriptions(r store.Reader) ([]wake.Subscription, error) {
	if _, err := r.Conversation(in.conversation.ID); err != nil {
		return nil, err
	}
	subs, err := r.SubscriptionsOf(in.conversation.ID)
	if err != nil {
		return nil, err
	}
	in.live = false
	for _, s := range subs {
		// One that has expired lives until the sweep ends it: its conversation is still to be told.
		in.live = in.live || !s.Claimed && s.EndedAt.IsZero()
	}
	return subs, nil
}

// Settle records durably that the conversation has received everything up to a place.
func (in *Inbox) Settle(ctx context.Context, through wake.Seq) error {
	return in.core.settle(ctx, in.conversation, through, in.conn.via)
}

// Sent accounts for messages that were put on their way.
func (in *Inbox) Sent(messages []Message) {
	in.core.accountSent(in.conversation, messages, in.conn.via)
}

func (c *Core) settle(ctx context.Context, conversation wake.Conversation, through wake.Seq, path string) error {
	err := c.store.Update(ctx, func(tx store.Tx) error { return tx.Advance(conversation.ID, through) })
	if errors.Is(err, store.ErrNotFound) {
		return nil // it was forgotten meanwhile
	}
	if err == nil {
		c.feed.Put(trace.Entry{Kind: trace.Delivered, App: conversation.App, Conversation: conversation.ID, Path: path,
			Occurrence: wake.OccurrenceID(c.epoch, through), Detail: "and all before it"})
	}
	return err
}

func (c *Core) accountSent(conversation wake.Conversation, messages []Message, path string) {
	for _, m := range messages {
		c.feed.Put(trace.Entry{Kind: trace.Sent, App: conversation.App, Conversation: conversation.ID, Event: m.Event, Occurrence: m.ID, Path: path})
	}
}

func topicsOf(conversation wake.Conversation, subs []wake.Subscription) []string {
	topics, seen := []string{conversation.Topic()}, map[string]bool{}
	for _, s := range subs {
		if !seen[s.Topic] {
			seen[s.Topic] = true
			topics = append(topics, s.Topic)
		}
	}
	return topics
}

// owed is one page of what somebody is owed.
type owed struct {
	occurrences []wake.Occurrence
	through     wake.Seq // everything up to here was looked at
	more        bool     // there may be more after it
}

// readOwed reads what a conversation is owed after a place: what one of its subscriptions takes, and its own topic.
func readOwed(r store.Reader, conversation wake.Conversation, subs []wake.Subscription, after wake.Seq, limit int) (owed, error) {
	own := conversation.Topic()
	return readLog(r, conversation.App, topicsOf(conversation, subs), after, limit, func(o wake.Occurrence) bool {
		return o.Topics[0] == own || slices.ContainsFunc(subs, func(s wake.Subscription) bool { return s.Takes(o) })
	})
}

// readLog reads the occurrences on some topics after a place, at most limit that are taken.
func readLog(r store.Reader, app string, topics []string, after wake.Seq, limit int, takes func(wake.Occurrence) bool) (owed, error) {
	log, err := r.Log()
	if err != nil {
		return owed{}, err
	}
	page := owed{through: after}
	for {
		found, err := r.Occurrences(app, topics, page.through, limit)
		if err != nil {
			return owed{}, err
		}
		for _, o := range found {
			if len(page.occurrences) == limit {
				page.more = true
				return page, nil
			}
			page.through = o.Seq
			if takes(o) {
				page.occurrences = append(page.occurrences, o)
			}
		}
		if len(found) < limit {
			// Nothing on these topics lies between the last one found and the log's end.
			page.through = max(page.through, log.Head)
			return page, nil
		}
	}
}

func (c *Core) messages(occurrences []wake.Occurrence) []Message {
	out := make([]Message, len(occurrences))
	for i, o := range occurrences {
		out[i] = Message{Seq: o.Seq, ID: o.ID(c.epoch), Kind: o.Kind, Event: o.Event, Text: o.Text, Data: o.Data, At: o.At}
	}
	return out
}

// Fetch returns messages of the conversation that a stream's capability watches, of which lines were shortened: those after a
// place and up to another, at most limit. Only what the conversation is or was owed is given.
func (c *Core) Fetch(ctx context.Context, token string, after, through wake.Seq, limit int) ([]Message, error) {
	conversation, _, err := c.conversationOf(ctx, credential.Stream, token)
	if err != nil {
		return nil, err
	}
	var page owed
	err = c.store.View(ctx, func(r store.Reader) error {
		subs, err := r.SubscriptionsEver(conversation.ID)
		if err != nil {
			return err
		}
		page, err = readOwed(r, conversation, subs, after, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	messages := c.messages(page.occurrences)
	for i, m := range messages {
		if m.Seq > through {
			return messages[:i], nil
		}
	}
	return messages, nil
}
