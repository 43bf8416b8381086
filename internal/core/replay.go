package core

import (
	"context"
	"errors"
	"time"

	"github.com/rouse-dev/rouse/internal/store"
	"github.com/rouse-dev/rouse/internal/wake"
)

// A replayer reads what a conversation's replays bring, from one snapshot. No occurrence is brought twice: what another
// subscription takes in its own time, or brings by a replay that was made earlier, a replay leaves out.
type replayer struct {
	r            store.Reader
	conversation wake.Conversation
	subs         map[string]wake.Subscription
	replays      []wake.Replay // all there ever were, in the order they were made
	taken        takers        // by subscriptions in their own time
}

func newReplayer(r store.Reader, conversation wake.Conversation) (*replayer, error) {
	subs, err := r.SubscriptionsEver(conversation.ID)
	if err != nil {
		return nil, err
	}
	p := &replayer{r: r, conversation: conversation, subs: make(map[string]wake.Subscription, len(subs)), taken: takersOf(subs)}
	for _, s := range subs {
		p.subs[s.ID] = s
	}
	p.replays, err = r.ReplaysEver(conversation.ID)
	return p, err
}

// each calls f for each replay, in the order they were made, with a function that reads a stretch of it.
func (p *replayer) each(f func(replay wake.Replay, read func(within stretch, limit int) (owed, error)) error) error {
	earlier := takers{}
	for _, replay := range p.replays {
		s := replay.Of(p.subs[replay.Subscription])
		read := func(within stretch, limit int) (owed, error) {
			within = stretch{max(within.after, replay.From), min(within.through, replay.Until)}
			return readLog(p.r, s.App, []string{s.Topic}, within, limit, func(o wake.Occurrence) bool {
				return s.Takes(o) && !p.taken.take(o) && !earlier.take(o)
			})
		}
		if err := f(replay, read); err != nil {
			return err
		}
		earlier.add(s)
	}
	return nil
}

// makeReplay keeps the replay of a subscription that was just made or renewed, which brings what lies after a place, and returns
// the subscription. One that was renewed brings what lies before its own time, and does so once.
func makeReplay(tx store.Tx, s wake.Subscription, after wake.Seq) (wake.Subscription, error) {
	if after >= s.From {
		return s, nil
	}
	replay := wake.Replay{Subscription: s.ID, Conversation: s.Conversation, From: after, After: after, Until: s.From}
	if _, err := tx.Replay(s.ID); !errors.Is(err, store.ErrNotFound) {
		return s, err
	}
	if s.Once {
		page, err := readOn(tx, s.App, s.Topic, stretch{after, s.From}, 1, replay.Of(s).Takes)
		if err != nil {
			return s, err
		}
		if len(page.occurrences) > 0 {
			// What a once subscription waits for has happened already: it ends with it.
			first := page.occurrences[0].Seq
			replay.From, replay.After, replay.Until = first-1, first-1, first
			s.EndedAt, s.Until = now(), s.From
			if err := tx.PutSubscription(s); err != nil {
				return s, err
			}
		}
	}
	return s, tx.PutReplay(replay)
}

// passOver is how far, before the transaction that makes a once subscription with a replay, the log holds nothing it takes: a
// filter may pass over a million occurrences, and the database's writer does not wait for that.
func (c *Core) passOver(ctx context.Context, s wake.Subscription, span time.Duration) (through wake.Seq, err error) {
	for more := true; more && err == nil; err = errors.Join(err, ctx.Err()) {
		err = c.store.View(ctx, func(r store.Reader) error {
			log, err := r.Log()
			if err != nil {
				return err
			}
			if through == 0 {
				if through, err = r.PlaceBefore(s.CreatedAt.Add(-span)); err != nil {
					return err
				}
			}
			s.From = through
			page, err := readLog(r, s.App, []string{s.Topic}, stretch{through, log.Head}, 1, s.Takes)
			if err != nil {
				return err
			}
			if more = page.more && len(page.occurrences) == 0; len(page.occurrences) > 0 {
				through = page.occurrences[0].Seq - 1
			} else {
				through = page.through
			}
			return nil
		})
	}
	return through, err
}
