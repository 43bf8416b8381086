package core

import (
	"context"

	"github.com/rouse-dev/rouse/internal/credential"
	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// FetchOne returns one message of the conversation that a stream's capability watches, of which a line was shortened. Only what
// the conversation is or was owed is given: of anything else there is none.
func (c *Core) FetchOne(ctx context.Context, token string, at wake.Seq) ([]Message, error) {
	conversation, _, err := c.conversationOf(ctx, credential.Stream, token)
	if err != nil {
		return nil, err
	}
	messages, err := c.fetchLog(ctx, conversation, stretch{at - 1, at}, 1)
	if err != nil || len(messages) > 0 {
		return messages, err
	}
	return c.fetchReplays(ctx, conversation, "", stretch{at - 1, at}, 1)
}

// Fetch returns the messages that a digest of that conversation stands for: those after a place and up to another, at most limit,
// of the log or, with a subscription, of its replay.
func (c *Core) Fetch(ctx context.Context, token, replay string, after, through wake.Seq, limit int) ([]Message, error) {
	conversation, _, err := c.conversationOf(ctx, credential.Stream, token)
	if err != nil {
		return nil, err
	}
	if replay == "" {
		return c.fetchLog(ctx, conversation, stretch{after, through}, limit)
	}
	return c.fetchReplays(ctx, conversation, replay, stretch{after, through}, limit)
}

func (c *Core) fetchLog(ctx context.Context, conversation wake.Conversation, within stretch, limit int) ([]Message, error) {
	return c.gather(ctx, within, limit, "", func(r store.Reader, within stretch, limit int) (owed, error) {
		subs, err := r.SubscriptionsEver(conversation.ID)
		if err != nil {
			return owed{}, err
		}
		return readOwed(r, conversation, subs, within, limit)
	})
}

// fetchReplays reads a stretch of the replay of one subscription, or with none of the first replay that has something there.
func (c *Core) fetchReplays(ctx context.Context, conversation wake.Conversation, of string, within stretch, limit int) ([]Message, error) {
	return c.gather(ctx, within, limit, of, func(r store.Reader, within stretch, limit int) (page owed, err error) {
		page.through = within.through
		p, err := newReplayer(r, conversation)
		if err != nil {
			return owed{}, err
		}
		err = p.each(func(replay wake.Replay, read func(stretch, int) (owed, error)) error {
			if len(page.occurrences) > 0 || of != "" && of != replay.Subscription || replay.Until <= within.after || replay.From >= within.through {
				return nil
			}
			page, err = read(within, limit)
			return err
		})
		return page, err
	})
}

// gather reads on until a stretch was read to its end, or there is enough.
func (c *Core) gather(ctx context.Context, within stretch, limit int, replay string, read func(store.Reader, stretch, int) (owed, error)) ([]Message, error) {
	var all []wake.Occurrence
	for more := true; more && len(all) < limit; {
		if err := c.store.View(ctx, func(r store.Reader) error {
			page, err := read(r, within, limit-len(all))
			all, within.after, more = append(all, page.occurrences...), page.through, page.more
			return err
		}); err != nil {
			return nil, err
		}
	}
	return c.messages(all, replay), nil
}
