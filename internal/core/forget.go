package core

import (
	"context"
	"errors"

	"github.com/rouse-dev/rouse/internal/bus"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/trace"
	"github.com/rouse-dev/rouse/internal/wake"
)

// forgetStep is how much is removed in one transaction: others wait for it, for some milliseconds.
const forgetStep = 1000

// ForgetUser removes everything kept of one of the app's users: conversations, subscriptions, webhooks, what the user was sent
// or is owed, publish URLs, the workspace. It reports whether there was anything, once all of it is removed; the content has
// left the database's files a moment later. The user's streams end. What a crash interrupts, the sweep goes on with.
func (c *Core) ForgetUser(ctx context.Context, app wake.App, user string) (bool, error) {
	if err := wake.CheckUser("user", user); err != nil {
		return false, err
	}
	removed, err := c.forget(ctx, store.Person{App: app.ID, User: user})
	return removed > 0, fault(err)
}

func (c *Core) forget(ctx context.Context, who store.Person) (removed int, err error) {
	for more, first := true, true; more; first = false {
		var done store.Forgotten
		err := c.store.Update(ctx, func(tx store.Tx) (err error) {
			if done, err = tx.Forget(who.App, who.User, forgetStep); err == nil && first {
				_, err = tx.Append(c.forgottenNotice(who))
			}
			return err
		})
		if err != nil {
			return removed, err
		}
		c.announceForgotten(who.App, done.Conversations)
		removed, more = removed+done.Removed, done.More
	}
	c.hintScrub()
	c.verified.forget(who.App, wake.UserPrincipal(who.User))
	c.bus.Hint(bus.Key{App: who.App, Topic: forgottenTopic})
	return removed, nil
}

// announceForgotten makes conversations look again that are no more.
func (c *Core) announceForgotten(app string, conversations []string) {
	for _, id := range conversations {
		c.bus.Hint(bus.Key{App: app, Topic: wake.ConversationTopic(id)})
		c.feed.Put(trace.Entry{Kind: trace.Ended, App: app, Conversation: id, Detail: "its user was forgotten"})
	}
}

// finishForgetting goes on with what a crash interrupted.
func (c *Core) finishForgetting(ctx context.Context) error {
	var begun []store.Person
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		begun, err = r.Forgetting()
		return err
	})
	for _, who := range begun {
		_, failed := c.forget(ctx, who)
		err = errors.Join(err, failed)
	}
	return err
}
