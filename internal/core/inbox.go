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
	// Replay is the subscription whose replay brought the message; empty for one that comes at its place in the log.
	Replay string
}

// An Inbox reads what one conversation is owed: what replays bring, then the log, each in order from where the conversation has
// come. It belongs to one goroutine.
type Inbox struct {
	reading
	app    wake.App
	conn   *Connection
	watch  *bus.Watch
	topics []string // those watched
	live   bool     // something is subscribed still
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
	conn, err := c.connect(ctx, conversation, via, most)
	if err != nil {
		return nil, fault(err)
	}
	return &Inbox{reading: reading{core: c, conversation: conversation, cursor: conversation.Position}, app: app,
		conn: conn, watch: c.bus.Watch(), live: true}, nil
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

// Read returns the next messages, at most limit, and moves on past them. It does not wait: without any, all was read. ErrGone
// means that the conversation is no more.
func (in *Inbox) Read(ctx context.Context, limit int) ([]Message, error) {
	for {
		messages, err := in.look(ctx, limit)
		if errors.Is(err, store.ErrNotFound) {
			in.live, in.behind = false, false
			return nil, ErrGone
		}
		if err != nil || len(messages) > 0 || !in.behind {
			return messages, err
		}
	}
}

// look reads from one snapshot. It may find nothing and be behind still.
func (in *Inbox) look(ctx context.Context, limit int) (messages []Message, err error) {
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
			messages, err = in.read(r, subs, limit)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return messages, in.passBy(ctx)
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

// Settle records durably what the conversation has received. That a line has been out for a while says so on the newest of its
// streams only: an older one may lead nowhere any more, and the newest may not have written as much.
func (in *Inbox) Settle(ctx context.Context, receipt Receipt) error {
	if in.conn.via == ViaStream && !in.conn.newest() {
		return nil
	}
	return in.core.settle(ctx, in.conversation, in.settled(receipt), in.conn.via)
}

// Sent accounts for messages that were put on their way.
func (in *Inbox) Sent(messages []Message) {
	in.core.accountSent(in.conversation, messages, in.conn.via)
}

func (c *Core) accountSent(conversation wake.Conversation, messages []Message, path string) {
	for _, m := range messages {
		c.feed.Put(trace.Entry{Kind: trace.Sent, App: conversation.App, Conversation: conversation.ID, Event: m.Event, Occurrence: m.ID, Path: path})
	}
}

// messages are occurrences as a conversation receives them; replay is the subscription whose replay brought them, if one did.
func (c *Core) messages(occurrences []wake.Occurrence, replay string) []Message {
	out := make([]Message, len(occurrences))
	for i, o := range occurrences {
		out[i] = Message{Seq: o.Seq, ID: o.ID(c.epoch), Kind: o.Kind, Event: o.Event, Text: o.Text, Data: o.Data, At: o.At, Replay: replay}
	}
	return out
}
