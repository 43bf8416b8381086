package rousetest

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/rouse-dev/rouse/internal/core"
	"github.com/rouse-dev/rouse/internal/server"
	"github.com/rouse-dev/rouse/internal/strictjson"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A Core is a running core with one app, which is embedded: its Key, its Emit. Make one with [NewCore]. All methods are safe
// for concurrent use.
type Core struct {
	App
	URL string // the base address, for WAKESHIFT_CORE

	server *server.Server
}

// An App is an app of a [Core].
type App struct {
	ID  string
	Key string // for WAKESHIFT_KEY

	t    testing.TB
	core *core.Core
}

// NewCore starts a core with an app called "app" and a key for it, and stops it when the test has ended. A core that cannot be
// started or stopped fails the test. What it has to complain about goes to the test's log.
func NewCore(t testing.TB) *Core {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	running, err := server.Start(t.Context(), server.Options{Data: t.TempDir(), Listen: "127.0.0.1:0", PrivateWebhooks: true,
		NoAdmin: true, Logger: logger})
	if err != nil {
		t.Fatalf("rousetest: starting a core: %v", err)
	}
	t.Cleanup(func() {
		if err := running.Shutdown(); err != nil {
			t.Errorf("rousetest: stopping the core: %v", err)
		}
	})
	c := &Core{URL: running.URL(), server: running}
	c.App = newApp(t, running.Core(), "app")
	return c
}

// NewApp makes another app, with a key. An id that is taken or malformed fails the test.
func (c *Core) NewApp(id string) App {
	c.t.Helper()
	return newApp(c.t, c.server.Core(), id)
}

func newApp(t testing.TB, c *core.Core, id string) App {
	t.Helper()
	if _, err := c.CreateApp(t.Context(), id, ""); err != nil {
		t.Fatalf("rousetest: making the app: %v", err)
	}
	_, key, err := c.CreateKey(t.Context(), id, "")
	if err != nil {
		t.Fatalf("rousetest: making a key: %v", err)
	}
	return App{ID: id, Key: key.Reveal(), t: t, core: c}
}

// Setenv sets WAKESHIFT_CORE and WAKESHIFT_KEY for the rest of the test, for code that reads them. As with [testing.T.Setenv] the
// test cannot be parallel.
func (c *Core) Setenv() {
	c.t.Helper()
	c.t.Setenv("WAKESHIFT_CORE", c.URL)
	c.t.Setenv("WAKESHIFT_KEY", c.Key)
}

// An Event is something to emit.
type Event struct {
	Name      string
	Arguments any    // what encoding/json makes an object of; nil for none
	Payload   any    // likewise
	Text      string // what agents read first; empty: the name and the start of the payload
	ID        string // makes a repeated emit count once; may be empty
	To        string // the one user, of a personal event
}

// An Emitted says what became of an emit.
type Emitted struct {
	Matched   int // conversations and webhooks it is for
	Duplicate bool
}

// Emit emits an event as the app would. The app must have told the core of it: an SDK does with its first call. A refusal fails
// the test.
func (a App) Emit(e Event) Emitted {
	a.t.Helper()
	done, err := a.core.Emit(a.t.Context(), wake.App{ID: a.ID}, core.Emit{Name: e.Name, Arguments: a.object(e.Arguments),
		Payload: a.object(e.Payload), Text: e.Text, ID: e.ID, To: e.To})
	if err != nil {
		a.t.Fatalf("rousetest: emitting %s: %v", e.Name, err)
	}
	return Emitted{Matched: done.Matched, Duplicate: done.Duplicate}
}

func (a App) object(value any) json.RawMessage {
	a.t.Helper()
	if value == nil {
		return json.RawMessage("{}")
	}
	text, err := json.Marshal(value)
	if err != nil {
		a.t.Fatalf("rousetest: %v", err)
	}
	object, err := strictjson.Object(text, strictjson.Limits{MaxDepth: wake.MaxDepth})
	if err != nil {
		a.t.Fatalf("rousetest: %T: %v", value, err)
	}
	return json.RawMessage(object)
}

// A Subscription is a live subscription of a conversation.
type Subscription struct {
	Event     string          // empty for a plain topic
	Topic     string          // as it is routed
	Arguments json.RawMessage // of the event; nil for a plain topic
	Client    string          // the MCP client's name
	User      string          // the app's own id for the person; empty for nobody
	Connected bool            // a Monitor or connector of the conversation is connected now
}

// Subscriptions lists the app's live subscriptions, oldest first.
func (a App) Subscriptions() []Subscription {
	a.t.Helper()
	standing, _, err := a.core.Standing(a.t.Context(), a.ID)
	if err != nil {
		a.t.Fatalf("rousetest: listing subscriptions: %v", err)
	}
	var list []Subscription
	for _, s := range standing {
		list = append(list, Subscription{Event: s.Subscription.Event, Topic: s.Subscription.Topic, Arguments: s.Subscription.Arguments,
			Client: s.Conversation.Client, User: s.Subscription.User, Connected: s.Via != ""})
	}
	return list
}
