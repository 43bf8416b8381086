package core

import (
	"errors"
	"time"

	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/harness"
	"github.com/rouse-dev/rouse/internal/refusal"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// errUnknownSession is the one answer to a session key that does not hold here, whether another app, client or user has it or
// nobody.
func errUnknownSession() error {
	return refusal.New(refusal.UnknownSession, "session: there is no conversation of this app, client and user with that key")
}

// errNoConversation means that a call names no conversation that exists. It stays within the core.
var errNoConversation = errors.New("the call names no conversation")

// find looks up the conversation a call comes from: by its session key, else by the harness's own thread. Without either, or
// when the thread is new, it returns errNoConversation.
func (c *Core) find(r store.Reader, app wake.App, call wake.Call, agent harness.Agent) (wake.Conversation, error) {
	kind := wake.KindOf(agent.Harness, call.Client)
	if call.Session != "" {
		id, ok := c.master.Open(credential.SessionKey, call.Session)
		if !ok {
			return wake.Conversation{}, errUnknownSession()
		}
		found, err := r.Conversation(id)
		if errors.Is(err, store.ErrNotFound) {
			return wake.Conversation{}, errUnknownSession()
		}
		if err != nil {
			return wake.Conversation{}, err
		}
		if found.App != app.ID || found.Kind() != kind || found.User != call.User {
			return wake.Conversation{}, errUnknownSession()
		}
		return found, nil
	}
	thread := harness.Thread(call)
	if thread == "" {
		return wake.Conversation{}, errNoConversation
	}
	found, err := r.ConversationOf(app.ID, kind, call.User, thread)
	if errors.Is(err, store.ErrNotFound) {
		err = errNoConversation
	}
	return found, err
}

// seenStep is how stale a conversation's SeenAt may be before a call renews it.
const seenStep = time.Minute

// findOrMake looks up the conversation a call comes from and makes one when it names none. created reports the latter.
func (c *Core) findOrMake(tx store.Tx, app wake.App, call wake.Call, agent harness.Agent, fresh wake.Conversation) (conversation wake.Conversation, created bool, err error) {
	found, err := c.find(tx, app, call, agent)
	switch {
	case err == nil:
		if now().Sub(found.SeenAt) < seenStep && found.Version == call.Version {
			return found, false, nil
		}
		found.SeenAt, found.Version = now(), call.Version
		return found, false, tx.PutConversation(found)
	case !errors.Is(err, errNoConversation):
		return wake.Conversation{}, false, err
	}
	if err := c.roomForConversation(app.ID); err != nil {
		return wake.Conversation{}, false, err
	}
	log, err := tx.Log()
	if err != nil {
		return wake.Conversation{}, false, err
	}
	fresh.Position = log.Head
	return fresh, true, tx.PutConversation(fresh)
}

// newConversation is what findOrMake keeps when a call names no conversation.
func newConversation(app wake.App, call wake.Call, agent harness.Agent) wake.Conversation {
	at := now()
	return wake.Conversation{ID: credential.NewID(), App: app.ID, Harness: agent.Harness, Client: call.Client, Version: call.Version,
		User: call.User, Thread: harness.Thread(call), CreatedAt: at, SeenAt: at}
}
